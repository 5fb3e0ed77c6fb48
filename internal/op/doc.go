// Package op is how the input of an operation of the management API, which is a struct, is read from a request, checked, and written
// as one. The tags of its fields say all that there is to say:
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
// A field is in the path, in the query, a member of the JSON object that is the body (json), or the body itself (body, with its content type). What is zero is
// left out; where zero means something the field is a pointer. Other tags, such as pattern and maxlen, are for the description only: the
// operation checks that itself, and says it better.
package op
