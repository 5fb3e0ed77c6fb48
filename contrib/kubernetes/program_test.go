package kubernetes

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/test/exectest"
)

func atoi(t *testing.T, s string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// buildProgram builds the program from this tree, as the image has it, and returns the file.
func buildProgram(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "beanpole")
	t.Setenv("CGO_ENABLED", "0")
	if err := exectest.Build(program); err != nil {
		t.Fatal(err)
	}
	return program
}

// arguments are those of the pod, with another file for its configuration.
func arguments(t *testing.T, m manifest, config string) []string {
	t.Helper()
	container := m.set.Spec.Template.Spec.Containers[0]
	var args []string
	for _, arg := range container.Args {
		for _, mount := range container.VolumeMounts {
			if arg == mount.MountPath+"/beanpole.toml" {
				arg = config
			}
		}
		args = append(args, arg)
	}
	return args
}

// printed returns the settings that are in force in the pod.
func printed(t *testing.T, m manifest) map[string]string {
	t.Helper()
	config := filepath.Join(t.TempDir(), "beanpole.toml")
	if err := os.WriteFile(config, []byte(m.config.Data["beanpole.toml"]), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(buildProgram(t), append([]string{"config", "print"}, arguments(t, m, config)...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	settings := map[string]string{}
	for _, match := range regexp.MustCompile(`(?m)^([a-z-]+) = "?([^"#\n]*?)"? *(#.*)?$`).FindAllStringSubmatch(string(out), -1) {
		settings[match[1]] = match[2]
	}
	return settings
}
