// Package op parses and checks the input of an operation of the admin API, and formats it
// as a request. An input is a struct with tags on its fields:
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
// A field is in the path, in the query, in the JSON object of the body (json), or is the
// whole body (body, with its content type). Zero values are omitted. If zero has a
// meaning, the field is a pointer.
//
// The package enforces required, enum, min, max and maxitems. The tags pattern, maxlen,
// oneof, minmembers and as:"TubeName" are descriptions. The operation itself checks
// these, with a better error.
package op
