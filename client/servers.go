package client

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// Servers is a set of servers that do not know each other. Each job is on one of them:
// this is how users of beanstalkd spread their load. Any number of goroutines may share a
// Servers. It has a [Pool] for each server.
//
// A server that cannot be reached is not tried again for a while, at first for a second and
// later for up to half a minute, unless there is no other server.
//
// The errors are those of the pools: an [*Error], or several that are joined, one for
// each server that was tried.
type Servers struct {
	nodes     []*node
	reconnect time.Duration // how long a reserve waits for a server
	turn      atomic.Uint64 // moves with each round
}

// A node is one of the servers.
type node struct {
	*Pool

	mu struct {
		sync.Mutex
		until     time.Time // it is left alone
		pause     time.Duration
		downSince time.Time // since when it cannot be reached; zero: it can, as far as is known
	}
}

const (
	firstBackoff = time.Second
	maxBackoff   = 30 * time.Second
)

// NewServers returns a set of servers at these addresses, as [Dial] takes them. It
// does not connect yet. opt may be nil. Reconnect is for how long a reserve keeps trying
// when none of the servers can be reached: 0 is [DefaultReconnect]; with [Never] it returns
// the error at once. All other methods try each server once.
func NewServers(addrs []string, opt *PoolOptions) (*Servers, error) {
	var o PoolOptions
	if opt != nil {
		o = *opt
	}
	s := &Servers{reconnect: o.filled().Reconnect}
	o.Reconnect = time.Nanosecond // a lost connection is replaced once, then another server is tried
	if len(addrs) == 0 {
		return nil, connectError("", fmt.Errorf("%w: no servers", ErrInvalid))
	}
	for i, addr := range addrs {
		if slices.Contains(addrs[:i], addr) {
			return nil, connectError(addr, fmt.Errorf("%w: the server is named twice", ErrInvalid))
		}
		n := new(node)
		opt := o
		opt.ConnState = func(addr string, err error) {
			if err == nil {
				n.markUp()
			}
			if o.ConnState != nil {
				o.ConnState(addr, err)
			}
		}
		var err error
		if n.Pool, err = NewPool(addr, &opt); err != nil {
			return nil, err
		}
		s.nodes = append(s.nodes, n)
	}
	return s, nil
}

// Close closes the connections to all servers. The error is always nil.
func (s *Servers) Close() error {
	for _, n := range s.nodes {
		n.Close()
	}
	return nil
}

// Pools returns the pools of the servers, in the order of the addresses. Use them, with
// [Pool.Do], for commands that each server is to execute.
func (s *Servers) Pools() []*Pool {
	pools := make([]*Pool, len(s.nodes))
	for i, n := range s.nodes {
		pools[i] = n.Pool
	}
	return pools
}

// Pool returns the pool of a server, or nil if it is not in the set.
func (s *Servers) Pool(addr string) *Pool {
	for _, n := range s.nodes {
		if n.addr == addr || n.Addr() == addr {
			return n.Pool
		}
	}
	return nil
}

// A JobID is the id of a job and the server that gave it. It is written as
// "10.0.0.1:11300/7".
type JobID struct {
	Server string
	ID     uint64
}

// String returns the id as [ParseJobID] reads it.
func (id JobID) String() string { return id.Server + "/" + strconv.FormatUint(id.ID, 10) }

// MarshalText returns the id as [ParseJobID] reads it.
func (id JobID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText sets the id as [ParseJobID] does.
func (id *JobID) UnmarshalText(text []byte) (err error) {
	*id, err = ParseJobID(string(text))
	return err
}

// ParseJobID reads what [JobID.String] has written.
func ParseJobID(s string) (JobID, error) {
	i := strings.LastIndexByte(s, '/')
	if i <= 0 {
		return JobID{}, fmt.Errorf("%w: job %q: want SERVER/ID", ErrInvalid, s)
	}
	id, err := strconv.ParseUint(s[i+1:], 10, 64)
	if err != nil {
		return JobID{}, fmt.Errorf("%w: job %q: want SERVER/ID", ErrInvalid, s)
	}
	return JobID{s[:i], id}, nil
}

// JobID returns the id of the job with its server.
func (j *Job) JobID() JobID { return JobID{j.Server(), j.ID} }

// Put puts a job on one of the servers. Jobs with the same key go to the same one,
// as long as it can be reached; see [Servers.Order]. Without a key the servers
// take turns. Another server is tried if it is certain that the job was not
// put, because the server could not be reached, is draining, or is full. If that is not
// known, the error is [ErrOutcomeUnknown], as with [Conn.Put].
func (s *Servers) Put(ctx context.Context, key string, job NewJob) (JobID, error) {
	order := s.order(key)
	if key == "" {
		order = s.rotated()
	}
	var errs []error
	for _, n := range reachableFirst(order) {
		id, err := n.Put(ctx, job)
		if err == nil {
			n.markUp()
			return JobID{n.addr, id}, nil
		}
		errs = append(errs, err)
		n.backoff(err)
		if !mayPutElsewhere(err) {
			break
		}
	}
	return JobID{}, errors.Join(errs...)
}

// mayPutElsewhere reports whether it is certain, after an error, that a job was not
// put, and whether another server may take it.
func mayPutElsewhere(err error) bool {
	elsewhere := errors.Is(err, ErrDisconnected) || errors.Is(err, ErrDraining) || errors.Is(err, ErrOutOfMemory)
	return elsewhere && !errors.Is(err, ErrOutcomeUnknown)
}

// Order returns the addresses of the servers in the order in which they are tried
// for a key: by rendezvous hashing (Thaler and Ravishankar, 1996), so when a server is
// added or removed, only its own share of the keys moves. The weight of a server is the
// 64-bit FNV-1a hash of its address, a zero byte and the key, mixed by the
// finalizer of MurmurHash3; the largest comes first.
func (s *Servers) Order(key string) []string {
	nodes := s.order(key)
	addrs := make([]string, len(nodes))
	for i, n := range nodes {
		addrs[i] = n.addr
	}
	return addrs
}

func (s *Servers) order(key string) []*node {
	nodes := slices.Clone(s.nodes)
	slices.SortFunc(nodes, func(a, b *node) int {
		if weight(a.addr, key) > weight(b.addr, key) {
			return -1
		}
		return 1
	})
	return nodes
}

func weight(addr, key string) uint64 {
	f := fnv.New64a()
	f.Write([]byte(addr))
	f.Write([]byte{0})
	f.Write([]byte(key))
	h := f.Sum64()
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// rotated returns the servers, each first in its turn.
func (s *Servers) rotated() []*node {
	first := int(s.turn.Add(1) % uint64(len(s.nodes)))
	return slices.Concat(s.nodes[first:], s.nodes[:first])
}

// reachableFirst returns the servers, those at the end that are left alone at present.
func reachableFirst(nodes []*node) []*node {
	var reachable, others []*node
	for _, n := range nodes {
		if n.backingOff() {
			others = append(others, n)
		} else {
			reachable = append(reachable, n)
		}
	}
	return append(reachable, others...)
}

// backingOff reports whether a server is left alone.
func (n *node) backingOff() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return time.Now().Before(n.mu.until)
}

// backoff leaves the server alone for a while if it could not be reached. It returns
// for how long.
func (n *node) backoff(err error) time.Duration {
	if !errors.Is(err, ErrDisconnected) {
		return 0
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	if n.mu.downSince.IsZero() {
		n.mu.downSince = now
	}
	n.mu.pause = min(max(2*n.mu.pause, firstBackoff), maxBackoff)
	n.mu.until = now.Add(n.mu.pause)
	return n.mu.pause
}

// markUp ends the backoff of a server.
func (n *node) markUp() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.pause, n.mu.until, n.mu.downSince = 0, time.Time{}, time.Time{}
}

// Reserve takes a job from any of the servers, of these tubes, or of "default" if
// there are none. Servers that have jobs are asked in turn; if none has a job, it waits
// for the first job on any of them. Priorities count within a server only. What
// [Pool.Reserve] says about its job holds for this one too.
//
// While it waits, servers may become unreachable and come back. When none has been
// reachable for as long as the Reconnect of [NewServers] says, the error is
// [ErrDisconnected], which joins the errors of all servers.
func (s *Servers) Reserve(ctx context.Context, tubes ...string) (*Job, error) {
	return s.reserve(ctx, forever, tubes)
}

// ReserveTimeout is [Servers.Reserve] that waits d, rounded up to whole seconds,
// and then returns [ErrTimedOut], which is [ErrDisconnected] too if it is known that
// no server can be reached. With 0 it does not wait.
func (s *Servers) ReserveTimeout(ctx context.Context, d time.Duration, tubes ...string) (*Job, error) {
	return s.reserve(ctx, d, tubes)
}

// reserve takes a job. If there is none it waits for one.
func (s *Servers) reserve(ctx context.Context, d time.Duration, tubes []string) (*Job, error) {
	whole, err := timeout(d)
	if err != nil {
		return nil, reserveError("", err)
	}
	job, err := s.sweep(ctx, tubes)
	if err == nil || d == 0 || !errors.Is(err, ErrTimedOut) && (s.reconnect == 0 || s.patience(time.Now()) == forever) {
		return job, inTime(ctx, "", err)
	}
	if d != forever {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, time.Duration(whole)*time.Second, ErrTimedOut)
		defer stop()
	}
	job, err = s.await(ctx, tubes)
	return job, inTime(ctx, "", err)
}

// patience is for how long a reserve that began then is still to wait for a server: forever if one can be reached, as far as
// is known.
func (s *Servers) patience(began time.Time) time.Duration {
	for _, n := range s.nodes {
		n.mu.Lock()
		since := n.mu.downSince
		n.mu.Unlock()
		if since.IsZero() {
			return forever
		}
		if since.After(began) {
			began = since
		}
	}
	return s.reconnect - time.Since(began)
}

// sweep asks one server after the other, until one has a job. If there is none, the error is
// ErrTimedOut if at least one server has answered so.
func (s *Servers) sweep(ctx context.Context, tubes []string) (*Job, error) {
	var empty error
	var errs []error
	for _, n := range reachableFirst(s.rotated()) {
		if n.backingOff() && empty != nil {
			continue // left alone, and there are others
		}
		job, err := n.ReserveTimeout(ctx, 0, tubes...)
		if err == nil || errors.Is(err, ErrTimedOut) {
			n.markUp()
		}
		switch {
		case err == nil:
			return job, nil
		case errors.Is(err, ErrTimedOut):
			empty = err
		case ctx.Err() != nil:
			return nil, err
		default:
			n.backoff(err)
			errs = append(errs, err)
		}
	}
	if empty != nil {
		return nil, empty
	}
	return nil, errors.Join(errs...)
}

// await waits on all servers for the first job.
func (s *Servers) await(ctx context.Context, tubes []string) (*Job, error) {
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	type result struct {
		job *Job
		err error
	}
	results := make(chan result)
	for _, n := range s.nodes {
		go func() {
			job, err := s.awaitOne(waiting, n, tubes)
			results <- result{job, err}
		}()
	}
	var first *Job
	var errs []error
	for range s.nodes {
		switch r := <-results; {
		case r.err != nil:
			errs = append(errs, r.err)
		case first == nil:
			first = r.job
			stop() // the others hang up, so that their servers keep their jobs
		default:
			r.job.Abandon() // it came at the same moment
		}
	}
	switch {
	case first != nil:
		return first, nil
	case context.Cause(ctx) == ErrTimedOut && !slices.ContainsFunc(errs, func(err error) bool { return !errors.Is(err, ErrDisconnected) }):
		return nil, reserveError("", fmt.Errorf("%w: %w", ErrTimedOut, errors.Join(errs...))) // no server could be reached
	case ctx.Err() != nil:
		return nil, reserveError("", context.Cause(ctx))
	}
	return nil, errors.Join(errs...)
}

// awaitOne waits for a job of one server, which may be away for a while.
func (s *Servers) awaitOne(ctx context.Context, n *node, tubes []string) (*Job, error) {
	for began := time.Now(); ; {
		job, err := n.Pool.Reserve(ctx, tubes...)
		if !errors.Is(err, ErrDisconnected) {
			return job, err
		}
		pause, left := n.backoff(err), s.patience(began)
		if left <= 0 {
			return nil, err
		}
		select {
		case <-time.After(min(pause, left)):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// Delete deletes a job on its server. A job that was reserved is deleted through
// the job.
func (s *Servers) Delete(ctx context.Context, id JobID) error {
	p := s.Pool(id.Server)
	if p == nil {
		return &Error{Verb: wire.Delete.String(), Job: id.ID, Addr: id.Server, Err: errNotInSet}
	}
	return p.Delete(ctx, id.ID)
}

var errNotInSet = fmt.Errorf("%w: the set has no such server", ErrInvalid)
