package server

import (
	"container/heap"

	"github.com/beanpole-mq/beanpole/internal/conversation"
	"github.com/beanpole-mq/beanpole/internal/epoll"
)

// throttled is a heap of sockets whose conversations wait for a token, by the time when
// they may go on. Each knows its place there.
type throttled []*socket

func (t throttled) Len() int           { return len(t) }
func (t throttled) Less(i, j int) bool { return t[i].resumeAt < t[j].resumeAt }

func (t throttled) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].place, t[j].place = i, j
}

func (t *throttled) Push(x any) {
	s := x.(*socket)
	s.place = len(*t)
	*t = append(*t, s)
}

func (t *throttled) Pop() any {
	last := len(*t) - 1
	s := (*t)[last]
	(*t)[last] = nil
	*t = (*t)[:last]
	s.place = notThrottled
	return s
}

// notThrottled is the place of a socket that is not among the throttled.
const notThrottled = -1

// throttle lets a socket wait until it has a token. Its end is reported meanwhile, but
// only once: a client that has hung up may have sent what is to be executed.
func (l *loop) throttle(s *socket) {
	if s.place != notThrottled {
		return
	}
	s.resumeAt = s.Resume()
	heap.Push(&l.throttled, s)
	l.expect(s, epoll.Once)
}

// resume makes those a part of the next pass who have waited long enough.
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

// resumeNever is for a socket that has gone.
func (l *loop) resumeNever(s *socket) {
	if s.place != notThrottled {
		heap.Remove(&l.throttled, s.place)
	}
}
