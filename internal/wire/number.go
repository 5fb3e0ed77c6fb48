package wire

import "math"

// number parses spaces and a decimal number of at most limit. It returns the number and
// the index of its end, which is negative if there is no such number.
func number(s []byte, i int, limit uint64) (v uint64, end int) {
	for i < len(s) && s[i] == ' ' {
		i++
	}
	return digits(s, i, limit)
}

// digits parses a decimal number of at most limit, with any number of leading zeros.
func digits(s []byte, i int, limit uint64) (v uint64, end int) {
	const cutoff = math.MaxUint64 / 10
	start := i
	for ; i < len(s); i++ {
		d := s[i] - '0'
		if d > 9 {
			break
		}
		if v >= cutoff && (v > cutoff || d > math.MaxUint64%10) {
			return 0, -1
		}
		v = v*10 + uint64(d)
	}
	if i == start || v > limit {
		return 0, -1
	}
	return v, i
}

// strtol parses a number like C's strtol: white space, a sign, digits. Without digits,
// the number is 0. end is negative if the number does not fit.
func strtol(s []byte, i int) (v int64, end int) {
	i, negative := sign(s, i)
	if i == len(s) || s[i] < '0' || s[i] > '9' {
		return 0, i
	}
	limit := uint64(math.MaxInt64)
	if negative {
		limit++
	}
	long, end := digits(s, i, limit)
	if negative {
		long = -long
	}
	return int64(long), end
}

// sign skips white space and a sign.
func sign(s []byte, i int) (end int, negative bool) {
	for i < len(s) && (s[i] == ' ' || '\t' <= s[i] && s[i] <= '\r') {
		i++
	}
	negative = i < len(s) && s[i] == '-'
	if negative || i < len(s) && s[i] == '+' {
		i++
	}
	return i, negative
}

// strtoul parses a number like C's strtoul and truncates it to 32 bits: white space, a
// sign, digits. A minus sign negates modulo 2^64.
func strtoul(s []byte, i int) (v uint32, end int) {
	i, negative := sign(s, i)
	long, end := digits(s, i, math.MaxUint64)
	if negative {
		long = -long
	}
	return uint32(long), end
}
