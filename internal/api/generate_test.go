package api

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	yaml "github.com/oasdiff/yaml3"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/op"
	"github.com/beanpole-mq/beanpole/internal/policy"
	"github.com/beanpole-mq/beanpole/internal/rights"
	"github.com/beanpole-mq/beanpole/internal/schedule"
)

var update = flag.Bool("update", false, "write the generated files")

// The generated files equal the files in the tree:
//
//	go test ./internal/api -run TestGenerated -update
func TestGenerated(t *testing.T) {
	g := &generator{schemas: make(map[string]*object), comments: readComments(t, "../../client/admin")}
	g.methods(t)
	golden(t, "openapi.yaml", g.description())
	page, err := os.ReadFile("../../doc/api.md")
	if err != nil {
		t.Fatal(err)
	}
	table := regexp.MustCompile(`(?s)(<!-- operations -->\n).*(<!-- /operations -->\n)`)
	golden(t, "../../doc/api.md", table.ReplaceAll(page, []byte("${1}"+strings.ReplaceAll(rightsTable(), "$", "$$")+"${2}")))
}

func golden(t *testing.T, file string, text []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if is, err := os.ReadFile(file); err != nil || !bytes.Equal(is, text) {
		t.Errorf("%s differs from the table of operations; run go test ./internal/api -run TestGenerated -update (%v)", file, err)
	}
}

// A generator generates files from the table of operations.
type generator struct {
	comments map[string]string  // by method name, or by type and field name
	schemas  map[string]*object // schemas of the components
}

// readComments returns the comments of the methods of a package, and of the fields of its
// types.
func readComments(t *testing.T, dir string) map[string]string {
	all := make(map[string]string)
	files, _ := filepath.Glob(filepath.Join(dir, "*.go"))
	types, _ := filepath.Glob(filepath.Join(dir, "apitype", "*.go"))
	for _, file := range append(files, types...) {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if method, ok := n.(*ast.FuncDecl); ok && method.Recv != nil {
				all[method.Name.Name] = method.Doc.Text()
			}
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if fields, ok := spec.Type.(*ast.StructType); ok {
				for _, f := range fields.Fields.List {
					for _, name := range f.Names {
						all[spec.Name.Name+"."+name.Name] = strings.Join(strings.Fields(f.Doc.Text()+" "+f.Comment.Text()), " ")
					}
				}
			}
			return true
		})
	}
	return all
}

// comment returns the comment of a field, which can belong to an embedded struct.
func (g *generator) comment(t reflect.Type, f *reflect.StructField) string {
	for _, i := range f.Index[:len(f.Index)-1] {
		if t = t.Field(i).Type; t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
	}
	return g.comments[t.Name()+"."+f.Name]
}

// needs describes the required rights of an operation as a sentence.
func needs(n rights.Need) string {
	if n == rights.Free {
		return "Needs no right."
	}
	_, on := needsOn(n)
	return fmt.Sprintf("Needs %s on %s.", n, on)
}

func needsOn(n rights.Need) (set, on string) {
	join := " and "
	if n.OneOf {
		join = " or "
	}
	return strings.ReplaceAll(n.Rights.String(), ",", join), map[rights.Place]string{
		rights.SomeTube: "some tube", rights.EveryTube: "every tube", rights.NamedTube: "the tube", rights.TubeOfJob: "its tube",
	}[n.Place]
}

// said splits the comment of an operation's method into a summary and the rest.
func (g *generator) said(o *operation) (summary, text string) {
	summary, text, _ = strings.Cut(strings.TrimSuffix(g.comments[o.name()], "\n"), ".\n\n")
	summary = strings.TrimSuffix(strings.TrimPrefix(summary, o.name()+" calls "+o.Route+". It "), ".")
	return strings.ToUpper(summary[:1]) + summary[1:], text
}

// name returns the name of the client's method.
func (o *operation) name() string { return strings.ToUpper(o.ID[:1]) + o.ID[1:] }

var nothing = reflect.TypeFor[admin.None]()

// An asked is a transport that records a client's requests.
type asked struct {
	route string
	types []reflect.Type
}

func (a *asked) Do(_ context.Context, route string, in, out any) error {
	*a = asked{route, []reflect.Type{nothing, nothing}}
	for i, x := range []any{in, out} {
		if x != nil {
			a.types[i] = reflect.TypeOf(x).Elem()
		}
	}
	return nil
}

// methods compares the client's methods and their comments with the table.
func (g *generator) methods(t *testing.T) {
	var got asked
	c := reflect.ValueOf(admin.On(&got))
	for _, o := range operations() {
		m := c.MethodByName(o.name())
		if !m.IsValid() {
			t.Errorf("the client has no method %s", o.name())
			continue
		}
		args := []reflect.Value{reflect.ValueOf(t.Context())}
		if m.Type().NumIn() > 1 {
			args = append(args, reflect.New(m.Type().In(1).Elem()))
		}
		if m.Call(args); got.route != o.Route || !slices.Equal(got.types, []reflect.Type{o.in, o.out}) {
			t.Errorf("%s asks for %v, and %s is %s with %v and %v", o.name(), got, o.ID, o.Route, o.in, o.out)
		}
		if summary, _ := g.said(o); summary == "" || strings.HasPrefix(summary, o.name()) {
			t.Errorf("the comment of %s begins with %q, want %q", o.name(), summary, o.name()+" calls "+o.Route+". It ")
		}
	}
	if n := c.NumMethod(); n != len(operations())+1 { // including Do
		t.Errorf("the client has %d methods for %d operations", n, len(operations()))
	}
}

// rightsTable returns the operations by their rights, for doc/api.md.
func rightsTable() string {
	var needs []string
	routes := make(map[string][]string)
	for _, o := range operations() {
		need, on := needsOn(o.Needs)
		if o.Needs == rights.Free {
			need = "none"
		} else {
			need = "`" + strings.NewReplacer(" and ", "` and `", " or ", "` or `").Replace(need) + "` on " + on
		}
		if routes[need] == nil {
			needs = append(needs, need)
		}
		routes[need] = append(routes[need], "`"+o.Route+"`")
	}
	var b strings.Builder
	b.WriteString("| Right | Operations |\n|---|---|\n")
	for _, need := range needs {
		fmt.Fprintf(&b, "| %s | %s |\n", need, strings.Join(routes[need], ", "))
	}
	return b.String()
}

// An object is a YAML mapping. A flow is a YAML list on one line. A number keeps its
// notation.
type (
	object struct{ yaml.Node }
	flow   []any
	number string
)

func obj(pairs ...any) *object {
	o := &object{yaml.Node{Kind: yaml.MappingNode}}
	for i := 0; i < len(pairs); i += 2 {
		o.set(pairs[i].(string), pairs[i+1])
	}
	return o
}

func (o *object) set(name string, value any) *object {
	o.Content = append(o.Content, node(name), node(value))
	return o
}

func ref(kind, name string) *object { return obj("$ref", "#/components/"+kind+"/"+name) }

var plainYAML = regexp.MustCompile(`^[A-Za-z/][A-Za-z0-9 _/{}().-]*$`)

func node(value any) *yaml.Node {
	switch v := value.(type) {
	case *object:
		return &v.Node
	case []*object:
		list := &yaml.Node{Kind: yaml.SequenceNode}
		for _, one := range v {
			list.Content = append(list.Content, &one.Node)
		}
		return list
	case flow:
		list := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, one := range v {
			list.Content = append(list.Content, node(one))
		}
		return list
	case string:
		switch {
		case strings.Contains(v, "\n"):
			return &yaml.Node{Kind: yaml.ScalarNode, Style: yaml.LiteralStyle, Value: v + "\n"}
		case !plainYAML.MatchString(v) || slices.Contains([]string{"true", "false", "null", "no", "yes", "on", "off"}, v) || strings.HasSuffix(v, " "):
			return &yaml.Node{Kind: yaml.ScalarNode, Style: yaml.DoubleQuotedStyle, Value: v}
		}
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: fmt.Sprint(value)}
}

// description returns openapi.yaml.
func (g *generator) description() []byte {
	head, err := os.ReadFile("testdata/openapi-head.yaml")
	if err != nil {
		panic(err)
	}
	paths, items := obj(), make(map[string]*object)
	for _, o := range operations() {
		if items[o.path] == nil {
			items[o.path] = obj()
			paths.set(o.path, items[o.path])
		}
		items[o.path].set(strings.ToLower(o.method), g.operation(o))
	}
	problem := obj("description", "It was refused; `detail` says why, and what to do.", "content", content("application/problem+json", g.schema(reflect.TypeFor[admin.Problem](), "", "")))
	g.schemas["ID"] = obj("type", "integer", "minimum", 0)
	g.schemas["Priority"] = obj("type", "integer", "minimum", 0, "maximum", number("4294967295"), "description", "Smaller is more urgent.")
	settings, names := obj(), flow{}
	for _, s := range policy.Settings {
		about := obj("type", "string", "description", s.Doc+" It takes "+s.Takes()+".", "example", s.Default)
		if words := s.Words(); words != nil {
			about = obj("type", "string", "enum", listed(words), "description", s.Doc)
		}
		settings.set(s.Name, about)
		names = append(names, s.Name)
	}
	g.schemas["PolicySettings"] = obj("type", "object", "additionalProperties", false, "properties", settings)
	g.schemas["PolicySetting"] = obj("type", "string", "enum", names)
	schedules := obj()
	for _, s := range schedule.Settings {
		about := obj("type", "string", "description", s.Doc)
		if s.Words != nil {
			about.set("enum", listed(s.Words))
		}
		if s.Default != "" {
			about.set("default", s.Default)
		}
		schedules.set(s.Name, about)
	}
	g.schemas["ScheduleSettings"] = obj("type", "object", "additionalProperties", false, "properties", schedules)
	g.schemas["State"] = obj("type", "string", "enum", listed(op.States))
	g.schemas["TubeName"] = obj("type", "string", "pattern", `^[A-Za-z0-9+/;.$_()][A-Za-z0-9+/;.$_()-]{0,199}$`)
	g.schemas["Rights"] = obj("type", "array", "items", obj("type", "string", "enum", listed(strings.Split(rights.All.String(), ","))))
	schemas := obj()
	for _, name := range slices.Sorted(maps.Keys(g.schemas)) {
		schemas.set(name, g.schemas[name])
	}
	b := bytes.NewBuffer(head)
	out := yaml.NewEncoder(b)
	out.SetIndent(2)
	err = out.Encode(node(obj("paths", paths, "components", obj(
		"securitySchemes", obj("token", obj("type", "http", "scheme", "bearer", "description", "A token of an identity (`beanpole token new`).")),
		"responses", obj("Problem", problem), "schemas", schemas))))
	if err != nil {
		panic(err)
	}
	return b.Bytes()
}

func listed(names []string) flow {
	all := flow{}
	for _, name := range names {
		if _, err := strconv.Atoi(name); err == nil {
			all = append(all, number(name))
		} else {
			all = append(all, name)
		}
	}
	return all
}

func content(kind string, schema *object) *object {
	if schema == nil {
		schema = obj()
		schema.Style = yaml.FlowStyle
		return obj(kind, schema)
	}
	return obj(kind, obj("schema", schema))
}

func (g *generator) operation(o *operation) *object {
	summary, text := g.said(o)
	described := obj("operationId", o.ID, "summary", summary, "description", strings.TrimSpace(text+"\n"+needs(o.Needs)), "tags", flow{o.Tag})
	var params []*object
	for i := range o.plan.Fields {
		f := &o.plan.Fields[i]
		if f.Place != op.Path && f.Place != op.Query {
			continue
		}
		p := obj("name", f.Name, "in", string(f.Place))
		if f.Required() {
			p.set("required", true)
		}
		if text := g.comment(o.in, &f.StructField); text != "" {
			p.set("description", text)
		}
		params = append(params, p.set("schema", g.schema(f.Type, f.Tag, "")))
	}
	if params != nil {
		described.set("parameters", params)
	}
	if slices.ContainsFunc(o.plan.Fields, func(f op.Field) bool { return f.Place == op.Member || f.Place == op.Body }) {
		body := obj()
		if o.plan.NeedsBody() {
			body.set("required", true)
		}
		described.set("requestBody", body.set("content", g.body(o)))
	}
	success := obj("description", o.Success)
	if o.Location != "" {
		success.set("headers", obj("Location", obj("description", "The path of what was made.", "schema", obj("type", "string"))))
	}
	switch {
	case o.Type == "application/x-tar":
		success.set("content", content(o.Type, obj("type", "string", "format", "binary")))
	case o.Type != "":
		success.set("content", content(o.Type, nil))
	case o.out != nothing:
		success.set("content", content("application/json", g.schema(o.out, "", "")))
	}
	responses := obj(strconv.Itoa(o.Status), success)
	for _, status := range o.Problems {
		responses.set(strconv.Itoa(status), ref("responses", "Problem"))
	}
	return described.set("responses", responses.set("default", ref("responses", "Problem")))
}

func (g *generator) body(o *operation) *object {
	if o.plan.Streams() {
		return content("application/x-ndjson", nil)
	}
	schema := obj("type", "object", "additionalProperties", false)
	if either := o.plan.Blank.Get("oneof"); either != "" {
		var all []*object
		for name := range strings.SplitSeq(either, ",") {
			all = append(all, obj("required", flow{name}))
		}
		schema.set("oneOf", all)
	}
	if least := o.plan.Blank.Get("minmembers"); least != "" {
		schema.set("minProperties", number(least))
	}
	required, members := flow{}, obj()
	for i := range o.plan.Fields {
		if f := &o.plan.Fields[i]; f.Place == op.Member {
			if f.Required() {
				required = append(required, f.Name)
			}
			members.set(f.Name, g.schema(f.Type, f.Tag, g.comment(o.in, &f.StructField)))
		}
	}
	if len(required) > 0 {
		schema.set("required", required)
	}
	return content("application/json", schema.set("properties", members))
}

// schema returns the schema of a type, with the constraints in the tag of its field.
func (g *generator) schema(t reflect.Type, tag reflect.StructTag, comment string) *object {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	s := obj()
	if comment != "" {
		defer func() { s.set("description", comment) }()
	}
	bound := func(tags ...string) {
		for _, pair := range tags {
			name, as, _ := strings.Cut(pair, " ")
			if text := tag.Get(name); text != "" && text != "-" {
				s.set(as, number(text))
			}
		}
	}
	enum := tag.Get("enum")
	switch as, k := tag.Get("as"), t.Kind(); {
	case as == "Rights" || as != "" && k != reflect.Slice:
		s = ref("schemas", as)
	case t == reflect.TypeFor[[]byte]():
		s.set("type", "string").set("contentEncoding", "base64")
	case k == reflect.String:
		s.set("type", "string")
		if enum != "" {
			s.set("enum", listed(strings.Split(enum, ",")))
		}
		for _, name := range []string{"pattern", "format"} {
			if text := tag.Get(name); text != "" {
				s.set(name, text)
			}
		}
		bound("minlen minLength", "maxlen maxLength")
	case k == reflect.Bool:
		s.set("type", "boolean")
		bound("default default")
	case k == reflect.Float64:
		s.set("type", "number").set("minimum", 0)
	case k == reflect.Slice:
		items := g.schema(t.Elem(), tag, "")
		if t.Elem().Kind() == reflect.Pointer {
			items.Content[1] = node(flow{"number", "null"})
		}
		s.set("type", "array").set("items", items)
		bound("maxitems maxItems")
	case k == reflect.Map:
		s.set("type", "object")
		if t.Elem().Kind() != reflect.Interface {
			s.set("additionalProperties", g.schema(t.Elem(), tag, ""))
		}
	case k == reflect.Struct:
		s = g.component(t)
	case enum != "":
		s.set("type", "integer").set("enum", listed(strings.Split(enum, ",")))
		bound("default default")
	default:
		s.set("type", "integer")
		if tag.Get("min") == "" {
			s.set("minimum", 0)
		}
		if k == reflect.Uint32 && tag.Get("max") == "" {
			s.set("maximum", number("4294967295"))
		}
		bound("min minimum", "max maximum", "default default")
	}
	return s
}

// optional reports whether a field belongs to a struct that can be nil.
func optional(t reflect.Type, index []int) bool {
	return len(index) > 1 && t.Field(index[0]).Type.Kind() == reflect.Pointer
}

// component returns a reference to the schema of a struct.
func (g *generator) component(t reflect.Type) *object {
	if g.schemas[t.Name()] == nil {
		s := obj()
		g.schemas[t.Name()] = s
		required, members := flow{}, obj()
		for _, f := range reflect.VisibleFields(t) {
			name, left, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.Anonymous || name == "-" {
				continue
			}
			if left != "omitempty" && !optional(t, f.Index) {
				required = append(required, name)
			}
			members.set(name, g.schema(f.Type, f.Tag, g.comment(t, &f)))
		}
		s.set("type", "object").set("additionalProperties", false).set("required", required).set("properties", members)
	}
	return ref("schemas", t.Name())
}
