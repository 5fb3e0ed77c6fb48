package console

import (
	"crypto/rand"
	"sync"
)

// A note is the message about the outcome of an action, on the page that follows it.
type note struct {
	Text  string
	Bad   bool
	Tasks []uint64 // ids of running tasks

	Nothing bool // the action changed nothing

	Job uint64 // job to which the note links; 0 means none
}

// notes keeps notes until pages show them. The URL contains only a random word, so that a
// link cannot show a text chosen by an attacker.
type notes struct {
	mu     sync.Mutex
	byWord map[string]note
	words  []string // oldest first
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
	n.byWord[word] = one
	n.words = append(n.words, word)
	return word
}

// take returns a note, or nil. It keeps the note, because the page can be reloaded.
func (n *notes) take(word string) *note {
	n.mu.Lock()
	defer n.mu.Unlock()
	if one, ok := n.byWord[word]; ok {
		return &one
	}
	return nil
}
