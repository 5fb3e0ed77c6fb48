package wire

// MaxTube is the length of the longest tube name, in bytes.
const MaxTube = 200

// nameChars has true for each byte that a tube name may contain.
var nameChars = func() (t [256]bool) {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-+/;.$_()"
	for _, c := range []byte(alphabet) {
		t[c] = true
	}
	return t
}()

// ValidTube reports whether name can be the name of a tube: 1 to [MaxTube]
// letters, digits and bytes of -+/;.$_() that do not begin with a hyphen.
func ValidTube(name []byte) bool {
	return len(name) <= MaxTube && nameEnd(name, 0) == len(name) && len(name) > 0 && name[0] != '-'
}

// nameEnd returns where the run of name characters that begins at s[i] ends.
func nameEnd(s []byte, i int) int {
	for i < len(s) && nameChars[s[i]] {
		i++
	}
	return i
}
