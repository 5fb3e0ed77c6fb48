// Package decode shows the body of a job in ways that a person can read. It guesses which ways
// fit, and never executes or trusts anything, because a body may come from anybody.
//
//	for _, v := range decode.Views(body) { ... v.Title, v.Tokens ... }
//
// Its work is bounded: Limit bytes are shown, a compressed body is unpacked up to
// unpackLimit bytes, and data nested deeper than maxDepth is not shown as a structure.
package decode
