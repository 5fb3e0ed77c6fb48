package console

import (
	"crypto/rand"
	"sync"
)

// A note tells what an action has done, on the page after it.
type note struct {
	Text  string
	Bad   bool
	Tasks []uint64 // that go on

	Nothing bool // was done

	Job    uint64 // whose page this leads to; 0: none
	Word   string // in the URL
	before []byte // the body that the job had; nil: it is not kept
}

// notes waits for the page that shows them. The URL has only a random word, so nobody can
// make a link to a page that shows a text of his.
type notes struct {
	mu     sync.Mutex
	byWord map[string]note
	words  []string // the oldest first
}

const maxNotes = 100

func (n *notes) add(one note) (word string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.byWord == nil {
		n.byWord = make(map[string]note)
	}
	if len(n.words) == maxNotes {
		delete(n.byWord, n.words[0])
		n.words = n.words[1:]
	}
	word = rand.Text()
	one.Word = word
	n.byWord[word] = one
	n.words = append(n.words, word)
	return word
}

// CanUndo reports whether the body of the job before is kept.
func (n *note) CanUndo() bool { return n.before != nil }

// take returns a note, if there is one. It stays, for the page may be loaded again.
func (n *notes) take(word string) *note {
	n.mu.Lock()
	defer n.mu.Unlock()
	if one, ok := n.byWord[word]; ok {
		return &one
	}
	return nil
}
