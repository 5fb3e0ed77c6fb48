// Package decode decodes the body of a job for display, search and editing. It guesses
// the format. It never executes or trusts the data, because any client can put a body.
//
//	for _, v := range decode.Views(body) { ... v.Title, v.Tokens ... }
//	kind, fields := decode.Describe(body)       // attributes of the job
//	text, as, ok := decode.Edit(body)           // and decode.Pack(body, edited)
//
// The work is limited. Limit bytes are displayed, and compressed data is decoded up to
// unpackLimit bytes. All data inside a body is decoded up to maxOpened bytes together.
// Data nested deeper than maxDepth is not shown as a structure.
package decode
