package server

// places has the clients of an event loop, each at an index, by which its poller names them.
type places[T any] struct {
	all  []*T // nil: free
	free []int
}

// add takes in a client, and returns its index.
func (p *places[T]) add(client *T) int {
	n := len(p.free)
	if n == 0 {
		p.all = append(p.all, client)
		return len(p.all) - 1
	}
	index := p.free[n-1]
	p.free = p.free[:n-1]
	p.all[index] = client
	return index
}

// remove frees the place of a client.
func (p *places[T]) remove(index int) {
	p.all[index] = nil
	p.free = append(p.free, index)
}

// taken returns how many clients there are.
func (p *places[T]) taken() int { return len(p.all) - len(p.free) }
