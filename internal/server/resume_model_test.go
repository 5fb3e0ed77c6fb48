package server

import (
	"slices"
	"testing"
)

// The model of a change of leader: clients of different members, one job, and successive
// leaders. TestResumeModel visits every state. Each client has at most one command in
// progress. A reservation has a serial number, which is the order (term, time of the
// reserve) of the design.
type (
	modelState struct {
		clients   [3]modelClient
		sessions  [3]modelSession // the sessions on the leader
		term      uint8
		serving   bool
		gone      bool  // the job was deleted
		serial    uint8 // serial number of the last reservation
		overdue   uint8 // a bit for each reservation whose TTR is over
		violation string
	}
	modelClient struct {
		alive, excused bool
		cmd            uint8 // command in progress
		belief         uint8 // serial number of the job that the client holds, or 0
		sent           uint8 // number of commands
		stream         uint8 // the term of the leader that its member uses
		up             uint8 // the command that is on its way
		down           [4]modelFrame
		state          modelFrame // the last mark
		valid          bool       // no reply has arrived after it
	}
	modelFrame struct {
		kind     uint8
		hold     uint8
		waiting  bool
		consumed uint8
	}
	modelSession struct {
		open, arrived, waiting bool
		hold, consumed         uint8
		claim                  uint8
	}
	// modelMistakes are the bugs that the model must detect.
	modelMistakes struct {
		markFirst     bool // the mark is sent before its reply
		keepsMark     bool // a reply does not invalidate the last mark
		servesEarly   bool // the leader does not wait for the members
		oldestWins    bool // the older of two claims wins
		lateFrames    bool // a member uses frames of the old leader after it has reached the new one
		resumesSent   bool // a member resumes a client with a command in progress
		claimsLast    bool // waiting reserves are resumed before the claims
		forgetsOnDial bool // the member drops a client's state when it has sent it
	}
)

const (
	modelReserve = 1 + iota
	modelDelete
	modelMark
	modelReserved
	modelDeleted
	modelNotFound
)

const maxModelSerial, maxModelTerm, maxModelSent = 3, 3, 3

// next returns the possible next states.
func (s modelState) next(n int, wrong modelMistakes) (all []modelState) {
	step := func(f func(t *modelState)) {
		t := s
		f(&t)
		t.check(n)
		all = append(all, t)
	}
	for i := range n {
		c := &s.clients[i]
		if !c.alive {
			if s.sessions[i].open { // the leader notices it
				step(func(t *modelState) { t.sessions[i] = modelSession{arrived: t.sessions[i].arrived}; t.match(n) })
			}
			continue
		}
		step(func(t *modelState) { t.clients[i] = modelClient{} }) // the client dies with its member
		if c.cmd == 0 && c.sent < maxModelSent {
			cmd := uint8(modelReserve)
			if c.belief != 0 {
				cmd = modelDelete
			}
			if cmd == modelDelete || s.serial < maxModelSerial {
				step(func(t *modelState) { t.clients[i].cmd, t.clients[i].up = cmd, cmd; t.clients[i].sent++ })
			}
		}
		if f := c.down[0]; f.kind != 0 {
			step(func(t *modelState) { t.deliver(i, wrong) })
		}
		if c.stream != s.term {
			step(func(t *modelState) { t.follow(i, n, wrong) })
		}
		if s.serving && s.sessions[i].open && c.stream == s.term && c.up != 0 && c.down[2].kind == 0 {
			step(func(t *modelState) { t.execute(i, n, wrong) })
		}
		if h := s.sessions[i].hold; h != 0 && s.overdue>>h&1 == 1 {
			step(func(t *modelState) { t.sessions[i].hold = 0; t.match(n) })
		}
	}
	for h := uint8(1); h <= s.serial; h++ {
		if s.overdue>>h&1 == 0 {
			step(func(t *modelState) { t.overdue |= 1 << h })
		}
	}
	if s.term < maxModelTerm {
		step(func(t *modelState) { t.term, t.serving, t.sessions = t.term+1, false, [3]modelSession{} })
	}
	if !s.serving {
		step(func(t *modelState) { t.serve(n, wrong) })
	}
	return all
}

// follow makes a member use the current leader.
func (s *modelState) follow(i, n int, wrong modelMistakes) {
	c := &s.clients[i]
	se := &s.sessions[i]
	se.arrived = true
	pending := c.up != 0 && c.stream == 0 // bytes that no leader has received
	sent := c.sent
	if pending {
		sent--
	}
	if c.stream != 0 && !(c.valid && (c.state.consumed == sent || wrong.resumesSent)) {
		*c = modelClient{}
		return
	}
	waits := c.state.waiting
	if c.cmd != 0 && !waits && !pending {
		s.violation = "a client gets no reply"
	}
	if !wrong.lateFrames {
		c.down = [4]modelFrame{}
	}
	if c.stream != 0 && c.state.consumed == sent {
		c.up = 0
	}
	c.stream = s.term
	*se = modelSession{open: true, arrived: true, waiting: waits, claim: c.state.hold, consumed: c.state.consumed}
	if s.serving { // the member is late
		c.excused = true
		s.claim(i, n)
		s.match(n)
	}
	if wrong.forgetsOnDial {
		c.state = modelFrame{consumed: c.state.consumed}
	}
}

// claim gives a session the job that its client holds, if the job is ready.
func (s *modelState) claim(i, n int) {
	se := &s.sessions[i]
	if se.claim != 0 && !s.gone && !s.held(n) && s.overdue>>se.claim&1 == 0 {
		se.hold = se.claim
	}
	se.claim = 0
}

// serve ends the leader's wait for the members.
func (s *modelState) serve(n int, wrong modelMistakes) {
	s.serving = true
	order := []int{0, 1, 2}[:n]
	slices.SortStableFunc(order, func(a, b int) int {
		d := int(s.sessions[b].claim) - int(s.sessions[a].claim)
		if wrong.oldestWins {
			return -d
		}
		return d
	})
	for i := range n {
		if !s.sessions[i].arrived && !wrong.servesEarly {
			s.clients[i].excused = true
		}
	}
	if wrong.claimsLast {
		s.match(n)
	}
	for _, i := range order {
		s.claim(i, n)
	}
	s.match(n)
}

func (s *modelState) held(n int) bool {
	return slices.ContainsFunc(s.sessions[:n], func(se modelSession) bool { return se.hold != 0 })
}

// match gives the ready job to a waiting session.
func (s *modelState) match(n int) {
	for i := range n {
		if se := &s.sessions[i]; se.waiting && s.serving && !s.gone && !s.held(n) && s.serial < maxModelSerial && s.clients[i].alive {
			s.serial++
			se.waiting, se.hold = false, s.serial
			s.reply(i, modelFrame{kind: modelReserved, hold: s.serial}, false)
		}
	}
}

// reply sends a reply, if there is one, and a mark.
func (s *modelState) reply(i int, reply modelFrame, markFirst bool) {
	c, se := &s.clients[i], s.sessions[i]
	if c.stream != s.term {
		return
	}
	frames := []modelFrame{reply, {kind: modelMark, hold: se.hold, waiting: se.waiting, consumed: se.consumed}}
	if markFirst {
		slices.Reverse(frames)
	}
	for _, f := range frames {
		if f.kind != 0 {
			at := slices.Index(c.down[:], modelFrame{})
			if at < 0 {
				s.violation = "the model has too few frames"
				return
			}
			c.down[at] = f
		}
	}
}

// execute executes a client's command on the leader.
func (s *modelState) execute(i, n int, wrong modelMistakes) {
	c, se := &s.clients[i], &s.sessions[i]
	cmd := c.up
	c.up = 0
	se.consumed++
	var reply modelFrame
	switch {
	case cmd == modelReserve && !s.gone && !s.held(n) && s.serial < maxModelSerial:
		s.serial++
		se.hold = s.serial
		reply = modelFrame{kind: modelReserved, hold: s.serial}
	case cmd == modelReserve:
		se.waiting = true
	case s.gone, s.held(n) && se.hold == 0:
		reply.kind = modelNotFound
		if c.belief != 0 && s.overdue>>c.belief&1 == 0 && !c.excused {
			s.violation = "the delete of a held job fails"
		}
	default:
		s.gone, se.hold = true, 0
		reply.kind = modelDeleted
	}
	s.reply(i, reply, wrong.markFirst)
}

// deliver passes a frame to a client's member, and a reply to the client.
func (s *modelState) deliver(i int, wrong modelMistakes) {
	c := &s.clients[i]
	f := c.down[0]
	copy(c.down[:], c.down[1:])
	c.down[3] = modelFrame{}
	if f.kind == modelMark {
		c.state, c.valid = f, true
		return
	}
	if c.cmd == 0 || f.kind == modelReserved != (c.cmd == modelReserve) {
		s.violation = "a client gets a reply without a command"
	}
	c.cmd, c.belief = 0, f.hold
	if !wrong.keepsMark {
		c.valid = false
	}
	if f.hold == 0 && c.stream == s.term {
		c.excused = false
	}
}

// check records a violation if two clients hold the job.
func (s *modelState) check(n int) {
	holders := 0
	for _, c := range s.clients[:n] {
		if c.alive && c.belief != 0 && s.overdue>>c.belief&1 == 0 && !c.excused {
			holders++
		}
	}
	if holders > 1 {
		s.violation = "two clients hold the job"
	}
}

// explore visits all states, and returns the first violation and the number of states.
func explore(n int, wrong modelMistakes) (violation string, path []modelState, states int) {
	var first modelState
	for i := range n {
		first.clients[i] = modelClient{alive: true, valid: true}
	}
	first.term = 1
	seen := map[modelState]modelState{first: first}
	for queue := []modelState{first}; len(queue) > 0; queue = queue[1:] {
		if s := queue[0]; s.violation != "" {
			for p := s; p != first; p = seen[p] {
				path = append(path, p)
			}
			slices.Reverse(path)
			return s.violation, path, len(seen)
		}
		for _, t := range queue[0].next(n, wrong) {
			if _, ok := seen[t]; !ok {
				seen[t] = queue[0]
				queue = append(queue, t)
			}
		}
	}
	return "", nil, len(seen)
}

func TestResumeModel(t *testing.T) {
	if v, path, n := explore(2, modelMistakes{}); v != "" {
		t.Errorf("%s, after %d states", v, n)
		for _, s := range path {
			t.Logf("term %d serving %v gone %v serial %d overdue %b %s", s.term, s.serving, s.gone, s.serial, s.overdue, s.violation)
			for i := range 2 {
				t.Logf("    %+v\n   %+v", s.clients[i], s.sessions[i])
			}
		}
	} else {
		t.Logf("%d states", n)
	}
	for name, wrong := range map[string]modelMistakes{
		"mark before reply": {markFirst: true, keepsMark: true}, "reply keeps mark": {keepsMark: true}, "early service": {servesEarly: true},
		"oldest claim wins": {oldestWins: true}, "late frames": {lateFrames: true}, "command in progress": {resumesSent: true},
		"claims after waits": {claimsLast: true}, "state forgotten": {forgetsOnDial: true},
	} {
		v, _, n := explore(2, wrong)
		if v == "" {
			t.Errorf("the model does not detect: %s (%d states)", name, n)
		}
		t.Logf("%s: %s after %d states", name, v, n)
	}
}
