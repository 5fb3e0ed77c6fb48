package broker

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// A panic in a turn ends the process, even if the caller recovers.
func TestPanicInTurn(t *testing.T) {
	if os.Getenv("BROKER_PANICS") != "" {
		defer func() { recover() }()
		New(engine.New(engine.Options{}), Options{}).Call(func(*engine.Engine, int64) { panic("oh dear") })
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestPanicInTurn$")
	cmd.Env = append(os.Environ(), "BROKER_PANICS=1")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "panic: broker: a turn has panicked: oh dear") {
		t.Errorf("%v\n%s", err, out)
	}
}
