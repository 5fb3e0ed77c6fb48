// Package decode shows the body of a job in ways that a person can read. It guesses which fit,
// and never executes or trusts anything: what it is given comes from strangers.
//
//	for _, v := range decode.Views(body) { ... v.Title, v.Tokens ... }
//
// What it reads is bounded: Limit bytes are shown, a compressed body is unpacked up to
// unpackLimit bytes, and what is nested deeper than maxDepth is not shown as a structure.
package decode
