package server

import (
	"container/heap"

	"github.com/beanpole-mq/beanpole/internal/conversation"
	"github.com/beanpole-mq/beanpole/internal/epoll"
)

// throttled is a heap of sockets whose conversations wait for a token. Some may have
// ended meanwhile.
type throttled []throttledSocket

type throttledSocket struct {
	*socket
	at int64 // when it may go on
}

func (t throttled) Len() int           { return len(t) }
func (t throttled) Less(i, j int) bool { return t[i].at < t[j].at }
func (t throttled) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *throttled) Push(x any)        { *t = append(*t, x.(throttledSocket)) }

func (t *throttled) Pop() any {
	last := len(*t) - 1
	s := (*t)[last]
	(*t)[last] = throttledSocket{}
	*t = (*t)[:last]
	return s
}

// throttle lets a socket wait until it has a token. Its end is reported meanwhile, but
// only once: a client that has hung up may have sent what is to be executed.
func (l *loop) throttle(s *socket) {
	heap.Push(&l.throttled, throttledSocket{s, s.Resume()})
	l.expect(s, epoll.Once)
}

// resume makes those a part of the next pass who have waited long enough.
func (l *loop) resume() {
	if len(l.throttled) == 0 {
		return
	}
	for now := l.srv.now(); len(l.throttled) > 0 && l.throttled[0].at <= now; {
		s := heap.Pop(&l.throttled).(throttledSocket)
		if s.State() == conversation.Throttled {
			l.ready = append(l.ready, s.socket)
		}
	}
}
