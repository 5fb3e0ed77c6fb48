package client

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"sync/atomic"
	"time"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// Servers distributes jobs over unrelated servers, each with its own queue, as users of
// beanstalkd do. A job is on one of the servers, and is lost with it. For a cluster,
// which has one queue, use a [Pool] with the list of its members as the address. Servers
// is safe for concurrent use. It has a [Pool] for each server.
//
// After a failed connection, it tries other servers first for ten seconds.
//
// To reserve jobs from all servers, use package worker or [Servers.Pools].
type Servers struct {
	nodes []*node
	turn  atomic.Uint64 // incremented by each call of rotated
}

// A node is one of the servers.
type node struct {
	*Pool
	avoided atomic.Int64 // end of the time in which others are tried first; Unix nanoseconds
}

const backoff = 10 * time.Second

// NewServers returns a set of servers at these addresses; see [Dial]. It does not
// connect. opt can be nil. Its Reconnect has no effect: a lost connection is replaced
// once, and then another server is tried.
func NewServers(addrs []string, opt *Options) (*Servers, error) {
	var o Options
	if opt != nil {
		o = *opt
	}
	o.Reconnect = time.Nanosecond
	if len(addrs) == 0 {
		return nil, connectError("", fmt.Errorf("%w: no servers", ErrInvalid))
	}
	s := new(Servers)
	for _, addr := range addrs {
		p, err := NewPool(addr, &o)
		if err != nil {
			return nil, err
		}
		if s.Pool(p.addr) != nil {
			return nil, connectError(addr, fmt.Errorf("%w: the server is named twice", ErrInvalid))
		}
		s.nodes = append(s.nodes, &node{Pool: p})
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

// Pools returns the pools of the servers, in the order of the addresses, for commands
// that each server must execute.
func (s *Servers) Pools() []*Pool {
	pools := make([]*Pool, len(s.nodes))
	for i, n := range s.nodes {
		pools[i] = n.Pool
	}
	return pools
}

// Pool returns the pool of a server, or nil if the server is not in the set.
func (s *Servers) Pool(addr string) *Pool {
	addr = withoutToken(addr)
	for _, n := range s.nodes {
		if n.addr == addr {
			return n.Pool
		}
	}
	return nil
}

// A JobID is the id of a job with its server's address: the [Pool.Addr], without a token.
type JobID struct {
	Server string
	ID     uint64
}

// JobID returns the id of the job with its server.
func (j *Job) JobID() JobID { return JobID{j.Server(), j.ID} }

// Put puts a job on one of the servers. Jobs with the same key go to the same server
// while it can be reached; see [Servers.Order]. Jobs without a key go to each server in
// turn. Put tries another server only if it is certain that the job was not put, because
// the server was unreachable, draining or full. Otherwise the error is
// [ErrOutcomeUnknown], as with [Conn.Put]. If several servers were tried, their errors
// are joined.
func (s *Servers) Put(ctx context.Context, key string, job NewJob) (JobID, error) {
	order := s.order(key)
	if key == "" {
		order = s.rotated()
	}
	var errs []error
	for _, n := range reachableFirst(order) {
		id, err := n.Put(ctx, job)
		if err == nil {
			return JobID{n.addr, id}, nil
		}
		errs = append(errs, err)
		if errors.Is(err, ErrDisconnected) {
			n.avoided.Store(time.Now().Add(backoff).UnixNano())
		}
		if !mayPutElsewhere(err) {
			break
		}
	}
	return JobID{}, errors.Join(errs...)
}

// mayPutElsewhere reports whether, after an error, a job was certainly not put and
// another server might accept it.
func mayPutElsewhere(err error) bool {
	elsewhere := errors.Is(err, ErrDisconnected) || errors.Is(err, ErrDraining) || errors.Is(err, ErrOutOfMemory)
	return elsewhere && !errors.Is(err, ErrOutcomeUnknown)
}

// Order returns the addresses of the servers in the order in which they are tried for a
// key. It uses rendezvous hashing (Thaler and Ravishankar, 1996), so that adding or
// removing a server moves only its own share of the keys. The weight of a server is the
// 64-bit FNV-1a hash of its address without a token, a zero byte and the key, mixed by
// the finalizer of MurmurHash3. The largest weight is first.
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

// rotated returns the servers, starting with the next in turn.
func (s *Servers) rotated() []*node {
	first := int(s.turn.Add(1) % uint64(len(s.nodes)))
	return slices.Concat(s.nodes[first:], s.nodes[:first])
}

// reachableFirst moves the servers that are currently avoided to the end.
func reachableFirst(nodes []*node) []*node {
	now := time.Now().UnixNano()
	var first, last []*node
	for _, n := range nodes {
		if n.avoided.Load() <= now {
			first = append(first, n)
		} else {
			last = append(last, n)
		}
	}
	return append(first, last...)
}

// Delete deletes a job on its server. Use [Job.Delete] for a reserved job.
func (s *Servers) Delete(ctx context.Context, id JobID) error {
	p := s.Pool(id.Server)
	if p == nil {
		return &Error{Verb: wire.Delete.String(), Job: id.ID, Addr: id.Server, Err: errNotInSet}
	}
	return p.Delete(ctx, id.ID)
}

var errNotInSet = fmt.Errorf("%w: the set has no such server", ErrInvalid)
