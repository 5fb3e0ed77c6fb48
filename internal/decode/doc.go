// Package decode opens the body of a job: to show it in ways that a person can read, to look
// into it, and to edit it and pack it again as it was. It guesses which ways fit, and never
// executes or trusts anything, because a body may come from anybody.
//
//	for _, v := range decode.Views(body) { ... v.Title, v.Tokens ... }
//	kind, fields := decode.Describe(body)       // what tells it from others
//	text, as, ok := decode.Edit(body)           // and decode.Pack(body, edited)
//
// Its work is bounded: Limit bytes are shown, a compressed body is unpacked up to
// unpackLimit bytes, everything that is packed inside of it up to maxOpened bytes together,
// and data nested deeper than maxDepth is not shown as a structure.
package decode
