package server

import (
	"container/heap"

	"github.com/beanpole-mq/beanpole/internal/conversation"
	"github.com/beanpole-mq/beanpole/internal/epoll"
)

// throttled is a heap of sockets whose conversations wait for a token, by the time when
// they may go on. Each knows its index there.
type throttled []*socket

func (t throttled) Len() int           { return len(t) }
func (t throttled) Less(i, j int) bool { return t[i].resumeAt < t[j].resumeAt }

func (t throttled) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].heapIndex, t[j].heapIndex = i, j
}

func (t *throttled) Push(x any) {
	s := x.(*socket)
	s.heapIndex = len(*t)
	*t = append(*t, s)
}

func (t *throttled) Pop() any {
	last := len(*t) - 1
	s := (*t)[last]
	(*t)[last] = nil
	*t = (*t)[:last]
	s.heapIndex = notThrottled
	return s
}

// notThrottled is the index of a socket that is not in the heap.
const notThrottled = -1

// throttle lets a socket wait until it has a token. The poller reports once meanwhile if
// the client hangs up, which ends nothing: it may have sent commands before.
func (l *loop) throttle(s *socket) {
	if s.heapIndex != notThrottled {
		return
	}
	s.resumeAt = s.Resume()
	heap.Push(&l.throttled, s)
	l.expect(s, epoll.Once)
}

// resume makes the sockets that have waited long enough a part of the next pass.
func (l *loop) resume() {
	if len(l.throttled) == 0 {
		return
	}
	for now := l.srv.now(); len(l.throttled) > 0 && l.throttled[0].resumeAt <= now; {
		s := heap.Pop(&l.throttled).(*socket)
		if s.State() == conversation.Throttled {
			l.ready = append(l.ready, s)
		}
	}
}

// unthrottle takes a socket that has gone out of the heap.
func (l *loop) unthrottle(s *socket) {
	if s.heapIndex != notThrottled {
		heap.Remove(&l.throttled, s.heapIndex)
	}
}
