package engine

import (
	"bytes"
	"math/bits"
)

// bodies stores the bodies of jobs in slots. Each slot belongs to a size class, and pages
// of slots contain no pointers. Up to 128 bytes, classes are 16 bytes apart. Above that,
// they are an eighth of a power of two apart, so a body wastes at most an eighth of its
// slot. A body larger than maxClassed has its own allocation.
type bodies struct {
	classes    [numClasses]bodyClass
	large      bodyClass
	largeBytes int64 // bytes in the pages of large
	used       int64 // bytes in the slots of all bodies
}

const (
	maxClassed    = 128 << 10
	numClasses    = 8 + 8*10 // 16..128 by 16, then eight per doubling up to 128 KiB
	bodyPageBytes = 256 << 10
)

type bodyClass struct {
	size  uint32 // size of a slot in bytes; 0 for large bodies
	slots slots
	pages [][]byte
}

func newBodies() *bodies {
	b := &bodies{large: bodyClass{slots: newSlots(1)}}
	for i := range b.classes {
		size := classSize(i)
		b.classes[i] = bodyClass{size: uint32(size), slots: newSlots(min(slotsPerPage, bodyPageBytes/size))}
	}
	return b
}

// classOf returns the class of the smallest slot for n bytes. n must be from 1 to
// maxClassed.
func classOf(n uint32) int {
	if n <= 128 {
		return int(n+15)/16 - 1
	}
	shift := bits.Len32(n-1) - 4 // the top four bits of n-1 are 8..15
	return 8 + 8*(shift-4) + int((n-1)>>shift) - 8
}

// classSize returns the size of a slot of class c, in bytes.
func classSize(c int) int {
	if c < 8 {
		return 16 * (c + 1)
	}
	c -= 8
	return (c%8 + 9) << (c/8 + 4)
}

func (b *bodies) class(n uint32) *bodyClass {
	if n > maxClassed {
		return &b.large
	}
	return &b.classes[classOf(n)]
}

// put copies body into a slot and returns the number of the slot. An empty body has no
// slot.
func (b *bodies) put(body []byte) uint32 {
	if len(body) == 0 {
		return none
	}
	c := b.class(uint32(len(body)))
	i, fresh := c.slots.alloc()
	page, _ := c.slots.pageOf(i)
	if fresh && int(page) == len(c.pages) {
		c.pages = append(c.pages, nil)
	}
	switch {
	case c.size == 0:
		c.pages[page] = bytes.Clone(body)
		b.largeBytes += int64(len(body))
		b.used += int64(len(body))
		return i
	case fresh:
		c.pages[page] = make([]byte, c.slots.perPage*c.size)
	}
	b.used += int64(c.size)
	copy(c.at(i, uint32(len(body))), body)
	return i
}

// get returns the n-byte body in slot i.
func (b *bodies) get(i, n uint32) []byte {
	if n == 0 {
		return nil
	}
	return b.class(n).at(i, n)
}

// free frees slot i, which contains a body of n bytes.
func (b *bodies) free(i, n uint32) {
	if n == 0 {
		return
	}
	c := b.class(n)
	page, gone := c.slots.free(i)
	if gone || c.size == 0 {
		c.pages[page] = nil
	}
	if c.size == 0 {
		b.largeBytes -= int64(n)
		b.used -= int64(n)
	}
	b.used -= int64(c.size)
}

// bytes returns the size of all pages, in bytes.
func (b *bodies) bytes() int64 {
	total := b.largeBytes
	for i := range b.classes {
		c := &b.classes[i]
		total += int64(c.slots.stored()) * int64(c.slots.perPage*c.size)
	}
	return total
}

func (c *bodyClass) at(i, n uint32) []byte {
	page, place := c.slots.pageOf(i)
	off := place * c.size
	return c.pages[page][off : off+n : off+n]
}
