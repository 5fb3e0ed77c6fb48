package engine

import "math/bits"

// slotsPerPage is the number of slots in a page of a slab, and the maximum in a page of
// bodies. A page of job records fills memory pages exactly.
const slotsPerPage = 2048

// slots allocates small numbers, grouped into pages. The owner stores each page, and
// frees it when it is empty. One empty page is kept, so that a queue whose length varies
// around a page boundary does not allocate.
//
// I10. A page is in open if and only if it has storage and a free slot. The free count of
// a page is the number of set bits in its map. No bit is set before the word first.
type slots struct {
	perPage uint32 // 1<<shift
	shift   uint8
	pages   []*slotPage
	open    []uint32 // numbers of the pages with a free slot
	vacant  []uint32 // numbers of the pages without storage
	empty   int      // pages with storage and only free slots
}

type slotPage struct {
	free    [slotsPerPage / 64]uint64 // a set bit is a free slot
	nfree   uint32
	openPos uint32 // index in open, while nfree > 0 and the page has storage
	storage bool
	first   uint8 // index in free: before it, no slot is free. Pages are often filled from the front
}

// newSlots returns slots in pages of at most atMost slots. The page size is the largest
// power of two up to atMost.
func newSlots(atMost int) slots {
	shift := bits.Len(uint(atMost)) - 1
	return slots{perPage: 1 << shift, shift: uint8(shift)}
}

// pageOf returns the page of slot i, and its index in the page.
func (s *slots) pageOf(i uint32) (page, place uint32) {
	return i >> (s.shift % 32), i & (s.perPage - 1)
}

// alloc returns a free slot. If fresh is true, the owner must first create the storage of
// its page.
func (s *slots) alloc() (i uint32, fresh bool) {
	if len(s.open) == 0 {
		s.openPage()
		fresh = true
	}
	n := s.open[len(s.open)-1]
	p := s.pages[n]
	for w := int(p.first); w < len(p.free); w++ {
		word := p.free[w]
		if word == 0 {
			continue
		}
		p.first = uint8(w)
		p.free[w] = word & (word - 1) // without its lowest bit
		if p.nfree == s.perPage {
			s.empty--
		}
		if p.nfree--; p.nfree == 0 {
			s.open = s.open[:len(s.open)-1]
		}
		return n<<(s.shift%32) + uint32(w*64+bits.TrailingZeros64(word)), fresh
	}
	panic("engine: an open page has no free slot")
}

// openPage adds a page, reusing a vacant number if there is one.
func (s *slots) openPage() {
	var n uint32
	if last := len(s.vacant) - 1; last >= 0 {
		n = s.vacant[last]
		s.vacant = s.vacant[:last]
	} else {
		n = uint32(len(s.pages))
		s.pages = append(s.pages, new(slotPage))
	}
	p := s.pages[n]
	for i := range s.perPage {
		p.free[i/64] |= 1 << (i % 64)
	}
	p.nfree = s.perPage
	p.storage = true
	p.openPos = uint32(len(s.open))
	s.open = append(s.open, n)
	s.empty++
}

// free frees slot i. If gone is true, the owner must free the storage of the page.
func (s *slots) free(i uint32) (page uint32, gone bool) {
	page, bit := s.pageOf(i)
	p := s.pages[page]
	p.free[bit/64] |= 1 << (bit % 64)
	p.first = min(p.first, uint8(bit/64))
	if p.nfree++; p.nfree == 1 {
		p.openPos = uint32(len(s.open))
		s.open = append(s.open, page)
	}
	if p.nfree < s.perPage {
		return page, false
	}
	if s.empty == 0 {
		s.empty++
		return page, false
	}
	last := s.open[len(s.open)-1]
	s.open[p.openPos] = last
	s.pages[last].openPos = p.openPos
	s.open = s.open[:len(s.open)-1]
	*p = slotPage{}
	s.vacant = append(s.vacant, page)
	return page, true
}

// nextUsed returns the first used slot at or after i in the same page. If there is none,
// ok is false.
func (s *slots) nextUsed(i uint32) (used uint32, ok bool) {
	page, place := s.pageOf(i)
	p := s.pages[page]
	if !p.storage {
		return 0, false
	}
	for k := place; k < s.perPage; k++ {
		if p.free[k/64]>>(k%64)&1 == 0 {
			return page<<(s.shift%32) + k, true
		}
	}
	return 0, false
}

// isUsed reports whether slot i, which was allocated before, is in use.
func (s *slots) isUsed(i uint32) bool {
	page, bit := s.pageOf(i)
	p := s.pages[page]
	return p.storage && p.free[bit/64]>>(bit%64)&1 == 0
}

// stored returns the number of pages with storage.
func (s *slots) stored() int { return len(s.pages) - len(s.vacant) }

// A slab contains records without pointers, each in a slot.
type slab[T any] struct {
	slots slots
	pages []*[slotsPerPage]T
}

func newSlab[T any]() slab[T] { return slab[T]{slots: newSlots(slotsPerPage)} }

func (s *slab[T]) at(i slot) *T { return &s.pages[i/slotsPerPage][i%slotsPerPage] }

// alloc allocates a slot and returns it with its empty record.
func (s *slab[T]) alloc() (slot, *T) {
	i, fresh := s.slots.alloc()
	if fresh {
		page := i / slotsPerPage
		if int(page) == len(s.pages) {
			s.pages = append(s.pages, nil)
		}
		s.pages[page] = new([slotsPerPage]T)
	}
	r := s.at(i)
	*r = *new(T)
	return i, r
}

// free frees a slot, and reports whether the page of its record was freed.
func (s *slab[T]) free(i slot) (gone bool) {
	page, gone := s.slots.free(i)
	if gone {
		s.pages[page] = nil
	}
	return gone
}

// A sparse contains a value for each record of a slab. Most values are zero; a page of
// zeros needs no storage.
type sparse[T comparable] []*[slotsPerPage]T

// at returns the value of a slot.
func (s sparse[T]) at(i slot) (v T) {
	if page := i / slotsPerPage; page < uint32(len(s)) && s[page] != nil {
		return s[page][i%slotsPerPage]
	}
	return v
}

// ref returns a pointer to the value of a slot.
func (s *sparse[T]) ref(i slot) *T {
	page := int(i / slotsPerPage)
	for len(*s) <= page {
		*s = append(*s, nil)
	}
	if (*s)[page] == nil {
		(*s)[page] = new([slotsPerPage]T)
	}
	return &(*s)[page][i%slotsPerPage]
}

func (s *sparse[T]) set(i slot, v T) {
	if v != *new(T) || s.at(i) != v {
		*s.ref(i) = v
	}
}

// freePage frees the page of a slot if all its values are zero.
func (s sparse[T]) freePage(i slot) {
	if page := i / slotsPerPage; page < uint32(len(s)) {
		s[page] = nil
	}
}
