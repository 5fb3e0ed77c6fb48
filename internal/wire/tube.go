package wire

// MaxTube is the maximum length of a tube name, in bytes.
const MaxTube = 200

// nameChars is true for each byte that a tube name can contain.
var nameChars = func() (t [256]bool) {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-+/;.$_()"
	for _, c := range []byte(alphabet) {
		t[c] = true
	}
	return t
}()

// ValidTube reports whether name is a valid tube name: 1 to [MaxTube] letters, digits and
// bytes of -+/;.$_(), not starting with a hyphen.
func ValidTube(name []byte) bool {
	return len(name) <= MaxTube && nameEnd(name, 0) == len(name) && len(name) > 0 && name[0] != '-'
}

// nameEnd returns the end of the name characters that start at s[i].
func nameEnd(s []byte, i int) int {
	for i < len(s) && nameChars[s[i]] {
		i++
	}
	return i
}
