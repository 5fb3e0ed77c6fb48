// Package op reads the input of an operation of the management API from a request, checks it, and
// writes it as a request. An input is a struct, and the tags of its fields describe it:
//
//	type ListJobs struct {
//		Tube   string `path:"tube" as:"TubeName"`
//		State  string `query:"state" as:"State" required:"true"`
//		Limit  int    `query:"limit" min:"1" max:"10000" default:"100"`
//	}
//
//	p := op.PlanOf(reflect.TypeFor[ListJobs]())
//	err := p.Query(&in, "listJobs", r.URL.RawQuery)
//
// A field is in the path, in the query, a member of the JSON object that is the body (json), or the
// body itself (body, with its content type). Zero values are left out; where zero has a meaning, the
// field is a pointer.
//
// The package enforces required, enum, min, max and maxitems. The tags pattern, maxlen, oneof and
// minmembers, and as:"TubeName", are for the description only: the operation checks these, with a
// better message.
package op
