package engine

// A table is a map that frees its memory when it becomes empty. Go's maps never shrink.
type table[K comparable, V any] struct {
	of   map[K]V // nil if the table is empty
	most int     // maximum length of the map
}

// maxKeptMap is the maximum length of a map that is kept when it is empty.
const maxKeptMap = 1024

func (t *table[K, V]) set(key K, v V) {
	if t.of == nil {
		t.of = make(map[K]V)
	}
	t.of[key] = v
	t.most = max(t.most, len(t.of))
}

func (t *table[K, V]) remove(key K) {
	if delete(t.of, key); len(t.of) == 0 && t.most > maxKeptMap {
		*t = table[K, V]{}
	}
}
