package kubernetes

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

func atoi(t *testing.T, s string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// beanpole returns the program, built from this tree, and the file with the pod's
// configuration.
func beanpole(t *testing.T, m manifest) (program, config string) {
	t.Helper()
	dir := t.TempDir()
	program, config = filepath.Join(dir, "beanpole"), filepath.Join(dir, "beanpole.toml")
	if out, err := exec.Command("go", "build", "-C", "../..", "-o", program, "./cmd/beanpole").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.WriteFile(config, []byte(m.config.Data["beanpole.toml"]), 0o600); err != nil {
		t.Fatal(err)
	}
	return program, config
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
	program, config := beanpole(t, m)
	out, err := exec.Command(program, append([]string{"config", "print"}, arguments(t, m, config)...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	settings := map[string]string{}
	for _, match := range regexp.MustCompile(`(?m)^([a-z-]+) = "?([^"#\n]*?)"? *(#.*)?$`).FindAllStringSubmatch(string(out), -1) {
		settings[match[1]] = match[2]
	}
	return settings
}

// served starts the program as the pod does, but for addresses and the place of the
// journal, and asks its admin pages for paths.
func served(t *testing.T, m manifest, paths ...string) {
	t.Helper()
	program, config := beanpole(t, m)
	cmd := exec.Command(program, arguments(t, m, config)...)
	cmd.Env = append(os.Environ(), "BEANPOLE_LISTEN=127.0.0.1", "BEANPOLE_PORT=0", "BEANPOLE_ADMIN=127.0.0.1:0", "BEANPOLE_JOURNAL="+t.TempDir())
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cmd.Process.Kill()
		cmd.Wait()
	}()
	var text strings.Builder
	var addr string
	lines := bufio.NewScanner(log)
	for lines.Scan() && !strings.Contains(lines.Text(), `"msg":"ready"`) {
		fmt.Fprintln(&text, lines.Text())
		if m := regexp.MustCompile(`admin pages.*"address":"([^"]+)"`).FindStringSubmatch(lines.Text()); m != nil {
			addr = m[1]
		}
	}
	if addr == "" {
		t.Fatalf("there are no admin pages:\n%s", &text)
	}
	go io.Copy(io.Discard, log)
	client := http.Client{Timeout: time.Minute}
	for _, path := range paths {
		resp, err := client.Get("http://" + addr + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", path, resp.Status)
		}
	}
}
