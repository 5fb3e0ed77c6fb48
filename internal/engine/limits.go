package engine

import "unsafe"

// Limits contains the limits of an engine. They can refuse puts and new tubes, but never
// deletes. Lowering a limit discards nothing. The zero value means no limit.
type Limits struct {
	// Memory is the maximum memory of all jobs and tubes, in bytes. A job takes jobBytes
	// and its body, rounded up by at most an eighth. A job that was reserved, kicked or
	// buried also takes coldBytes, and a unique job with a key takes keyBytes. A job that
	// failed also takes failureBytes and its FailureRecord, rounded up. A tube takes
	// tubeBytes and its name; the tube default is free. Tubes can exceed the limit by an
	// eighth, so that workers can still watch tubes when jobs take all the memory.
	Memory int64

	// Tubes is the maximum number of tubes, including default. An engine never has more
	// than 536,870,912.
	Tubes int

	// Watches is the maximum number of tubes that a session can watch.
	Watches int

	// Tube returns the limits of a tube. If it is nil, tubes have no limits. The engine
	// caches the result until SetLimits.
	Tube func(name string) TubeLimits
}

// TubeLimits contains the limits of a tube. The zero value means no limit.
type TubeLimits struct {
	Jobs  int64 // maximum number of jobs in any state
	Bytes int64 // maximum size of the bodies
}

// jobBytes is the size of a job without its body, in bytes: its record and its entries in
// a leaf and in the index. coldBytes is added when a job is first reserved, kicked or
// buried.
const (
	jobBytes  = int64(unsafe.Sizeof(job{}) + 3*unsafe.Sizeof(slot(0)))
	coldBytes = int64(unsafe.Sizeof(coldJob{}))
	keyBytes  = int64(unsafe.Sizeof(keyLink{}) + 16) // 16 approximates the place of a hash in a map
)

// tubeBytes is the approximate memory of a tube without its name: its record, a leaf, its
// entries in the lists of tubes, and one session that watches it.
const tubeBytes = int64(unsafe.Sizeof(tube{}) + unsafe.Sizeof(leaf{}) + 2*unsafe.Sizeof("") + 3*unsafe.Sizeof(&tube{}) + unsafe.Sizeof(watch{}))

// memoryOf returns the memory of a job with a body of n bytes.
func memoryOf(n uint32) int64 {
	switch {
	case n == 0:
		return jobBytes
	case n > maxClassed:
		return jobBytes + int64(n)
	}
	return jobBytes + int64(classSize(classOf(n)))
}

// memory returns the memory of all jobs and tubes, in bytes.
func (e *Engine) memory() int64 {
	tubes := int64(e.names.Len()-1)*tubeBytes + int64(e.names.bytes-len(DefaultTube))
	return tubes + int64(e.ids.n)*jobBytes + int64(e.jobs.coldCount)*coldBytes + int64(e.keys.held)*keyBytes +
		int64(len(e.failures.of))*failureBytes + e.bodies.used
}

// SetLimits replaces the limits.
func (e *Engine) SetLimits(l Limits) {
	e.limits = l
	e.limitsAge++
	e.limited = l.Memory > 0 || l.Tube != nil
}

// LimitedMemory returns the memory of all jobs and tubes as Limits.Memory counts it, and
// the limit. A limit of zero means no limit.
func (e *Engine) LimitedMemory() (used, limit int64) { return e.memory(), max(e.limits.Memory, 0) }

// LimitsOf returns the limits of a tube, which need not exist.
func (e *Engine) LimitsOf(tube string) TubeLimits {
	if e.limits.Tube == nil {
		return TubeLimits{}
	}
	if t := e.byName[tube]; t != nil {
		return e.limitsOf(t)
	}
	return e.limits.Tube(tube)
}

// limitsOf returns the limits of a tube and caches them until the limits change.
func (e *Engine) limitsOf(t *tube) TubeLimits {
	if t.limitsAge != e.limitsAge {
		t.limits, t.limitsAge = e.limits.Tube(t.name), e.limitsAge
	}
	return t.limits
}

// A Limit identifies a limit of Limits.
type Limit uint8

const (
	MemoryLimit    Limit = iota // Limits.Memory
	TubeJobsLimit               // TubeLimits.Jobs
	TubeBytesLimit              // TubeLimits.Bytes
	TubesLimit                  // Limits.Tubes
	WatchesLimit                // Limits.Watches
	numLimits
)

// String returns the name of the setting.
func (l Limit) String() string {
	return [numLimits]string{"max-memory", "[[limit]] jobs", "[[limit]] bytes", "max-tubes", "max-watched"}[l]
}

// refuse records a refusal by a limit.
func (e *Engine) refuse(l Limit, tube string) {
	e.refused[l]++
	e.refusedAt[l] = max(e.now, 1)
	if e.opt.LimitReached != nil {
		e.opt.LimitReached(l, tube)
	}
}

// RefusedSince returns the settings whose limits have refused a command since t.
func (e *Engine) RefusedSince(t int64) (settings []string) {
	for l, at := range e.refusedAt {
		if at > 0 && at >= t {
			settings = append(settings, Limit(l).String())
		}
	}
	return settings
}

// RefusedInTurn returns the settings whose limits have refused a command in this turn.
func (e *Engine) RefusedInTurn() []string { return e.RefusedSince(max(e.now, 1)) }

// Refusals counts refusals by limit: of jobs, tubes or watches.
type Refusals [numLimits]uint64

// Refusals returns the refusals since the engine was created.
func (e *Engine) Refusals() Refusals { return e.refused }

// room returns OK if the limits permit that a tube has more jobs, with more bytes of
// bodies, and that the engine takes more memory. n is the size of the job, in bytes. A
// quantity that does not grow is not limited.
func (e *Engine) room(t *tube, n uint32, jobs, bytes, memory int64) Outcome {
	l := &e.limits
	if memory > 0 && l.Memory > 0 && e.memory()+memory > l.Memory {
		return e.exceeds(MemoryLimit, t, memoryOf(n) > l.Memory)
	}
	if l.Tube == nil {
		return OK
	}
	most := e.limitsOf(t)
	switch {
	case jobs+bytes > 0 && most.Bytes > 0 && t.bytes+bytes > most.Bytes:
		return e.exceeds(TubeBytesLimit, t, int64(n) > most.Bytes)
	case jobs > 0 && most.Jobs > 0 && int64(t.jobs()) >= most.Jobs:
		return e.exceeds(TubeJobsLimit, t, false)
	}
	return OK
}

// exceeds records that a limit refuses a job, and returns the outcome. alone reports
// whether the job would exceed the limit even without other jobs.
func (e *Engine) exceeds(l Limit, t *tube, alone bool) Outcome {
	e.refuse(l, t.name)
	if alone {
		return TooBig
	}
	return OutOfMemory
}

// hasRoomForTube reports whether the tube exists or can be created.
func (e *Engine) hasRoomForTube(name []byte) bool {
	most, l := maxTubes, &e.limits
	if l.Tubes > 0 {
		most = min(most, l.Tubes)
	}
	full := e.names.Len() >= most
	heavy := l.Memory > 0 && e.memory()+tubeBytes+int64(len(name)) > l.Memory+l.Memory/8
	switch {
	case !full && !heavy, e.byName[string(name)] != nil:
		return true
	case full:
		e.refuse(TubesLimit, string(name))
	default:
		e.refuse(MemoryLimit, string(name))
	}
	return false
}
