package kubernetes

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	networking "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

// What KEDA is asked for is in its definition of a ScaledObject, and in its scaler for
// beanstalkd.
func TestScaledObject(t *testing.T) {
	keda := source(t, "github.com/kedacore/keda/v2@v2.17.2")
	var definition struct {
		Spec struct {
			Versions []struct {
				Name   string
				Schema struct {
					OpenAPIV3Schema schema `json:"openAPIV3Schema"`
				}
			}
		}
	}
	var object map[string]any
	read(t, filepath.Join(keda, "config/crd/bases/keda.sh_scaledobjects.yaml"), &definition)
	text, err := os.ReadFile("scaledobject.yaml")
	if err != nil {
		t.Fatal(err)
	}
	first, second, _ := bytes.Cut(text, []byte("\n---\n"))
	if err := yaml.Unmarshal(first, &object); err != nil {
		t.Fatal(err)
	}
	version := definition.Spec.Versions[0]
	if want := "keda.sh/" + version.Name; object["apiVersion"] != want || object["kind"] != "ScaledObject" {
		t.Errorf("it is a %v of %v, KEDA has a ScaledObject of %s", object["kind"], object["apiVersion"], want)
	}
	version.Schema.OpenAPIV3Schema.check(t, "", object)

	scaler, err := os.ReadFile(filepath.Join(keda, "pkg/scalers/beanstalkd_scaler.go"))
	if err != nil {
		t.Fatal(err)
	}
	metadata := object["spec"].(map[string]any)["triggers"].([]any)[0].(map[string]any)["metadata"].(map[string]any)
	server := metadata["server"].(string)
	for _, m := range regexp.MustCompile("`keda:\"name=(\\w+),(.*)\"`").FindAllStringSubmatch(string(scaler), -1) {
		if _, ok := metadata[m[1]]; !ok && !strings.Contains(m[2], "optional") && !strings.Contains(m[2], "default") {
			t.Errorf("KEDA needs to know %s", m[1])
		}
		delete(metadata, m[1])
	}
	if len(metadata) > 0 {
		t.Errorf("KEDA does not know %v", metadata)
	}
	reachable(t, server, decode(t, second).(*networking.NetworkPolicy))
}

// reachable wants KEDA, which is in another namespace, to find the server and to be let
// through to it.
func reachable(t *testing.T, server string, policy *networking.NetworkPolicy) {
	t.Helper()
	m := build(t, ".")
	host, port, _ := strings.Cut(server, ":")
	if labels := strings.Split(host, "."); len(labels) != 3 || labels[0] != m.service.Name || labels[2] != "svc" {
		t.Errorf("the server is %s, want %s, its namespace, svc", host, m.service.Name)
	}
	if port != strconv.Itoa(int(m.service.Spec.Ports[0].Port)) {
		t.Errorf("the service has no port %s", port)
	}
	if !maps.Equal(policy.Spec.PodSelector.MatchLabels, m.network.Spec.PodSelector.MatchLabels) {
		t.Errorf("the policy is for other pods: %v", policy.Spec.PodSelector.MatchLabels)
	}
	rule := policy.Spec.Ingress[0]
	if rule.From[0].NamespaceSelector == nil || rule.Ports[0].Port.StrVal != m.service.Spec.Ports[0].TargetPort.StrVal {
		t.Errorf("the policy does not let another namespace through to the queue: %v", rule)
	}
}

// A schema is the part of an OpenAPI schema that says which fields there are.
type schema struct {
	Type                 string
	Properties           map[string]schema
	AdditionalProperties any
	Items                *schema
	Required             []string
}

// check looks for fields that do not exist, and for those that are missing.
func (s schema) check(t *testing.T, path string, value any) {
	t.Helper()
	switch value := value.(type) {
	case map[string]any:
		if len(s.Properties) == 0 {
			if s.Type != "object" {
				t.Errorf("%s is an object, want %s", path, s.Type)
			}
			return // any names
		}
		for name, v := range value {
			if property, ok := s.Properties[name]; ok {
				property.check(t, path+"."+name, v)
			} else {
				t.Errorf("there is no field %s.%s", path, name)
			}
		}
		for _, name := range s.Required {
			if _, ok := value[name]; !ok {
				t.Errorf("%s.%s is missing", path, name)
			}
		}
	case []any:
		if s.Items == nil {
			t.Errorf("%s is a list, want %s", path, s.Type)
			return
		}
		for _, v := range value {
			s.Items.check(t, path+"[]", v)
		}
	}
}

// source returns the directory with a module, as the module proxy has it.
func source(t *testing.T, module string) string {
	t.Helper()
	out, err := exec.Command("go", "mod", "download", "-json", module).Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var m struct{ Dir string }
	if err := yaml.Unmarshal(out, &m); err != nil {
		t.Fatal(err)
	}
	return m.Dir
}

func read(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}
