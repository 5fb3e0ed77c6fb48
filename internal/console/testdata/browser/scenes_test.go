package browser

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestScenes writes pictures of different queues if -shots is set: empty, with one tube,
// with 10,000 tubes, and in a disaster.
//
//	go test -run TestScenes -timeout 1h -warm 11m -shots DIR
//
// doc/ uses console-disaster.png. If the test runs as root, the disaster includes a full
// disk.
func TestScenes(t *testing.T) {
	if *shots == "" {
		t.Skip("no -shots")
	}
	for _, scene := range []struct {
		name  string
		make  func(t *testing.T) *server
		pages [][2]string // names of the files, and paths of the pages
	}{
		{"empty", func(t *testing.T) *server { return start(t) },
			[][2]string{{"overview", ""}, {"tubes", "tubes"}, {"connections", "connections"}, {"activity", "activity"}, {"tube", "tube/default"}}},
		{"one", func(t *testing.T) *server { s := start(t); s.put("mail", `{"to":"ann@example.com"}`, 42); return s },
			[][2]string{{"overview", ""}, {"tube", "tube/mail"}, {"job", "job/1"}}},
		{"many", func(t *testing.T) *server { s := start(t); manyTubes(t, s, 10_000); return s },
			[][2]string{{"overview", ""}, {"tubes", "tubes?sort=-put_per_second"}}},
		{"disaster", disaster,
			[][2]string{{"overview", ""}, {"tubes", "tubes?sort=-attention"}, {"tube", "tube/payments?state=buried"}, {"job", "job/2"}, {"server", "server"}, {"connections", "connections?sort=-waited"}}},
	} {
		t.Run(scene.name, func(t *testing.T) {
			s := scene.make(t)
			ctx := browse(t)
			if scene.name == "disaster" {
				picture(ctx, t, s.url(""), "console-disaster.png", 1280, "light", usualPaths)
			}
			for _, page := range scene.pages {
				for _, look := range []struct {
					width int64
					theme string
				}{{1280, "light"}, {1280, "dark"}, {1920, "dark"}, {360, "light"}, {360, "dark"}} {
					file := fmt.Sprintf("console-%s-%s-%d-%s.png", scene.name, page[0], look.width, look.theme)
					picture(ctx, t, s.url(page[1]), file, look.width, look.theme)
				}
			}
		})
	}
}

// usualPaths replaces the test's directories with those of an installed server.
const usualPaths = `(() => {
	const texts = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
	while (texts.nextNode()) {
		texts.currentNode.data = texts.currentNode.data.replace(/\S+(?=\/beanpole\.\w+\.wal)/, '/var/lib/beanpole').replace(/\S+(?=\/mail\.crt)/, '/etc/beanpole');
	}
})()`

// disaster returns a server with many problems: an expired certificate, a tube whose jobs
// time out or are buried, and a full tube. The disk is also full if the test can create a
// small one.
func disaster(t *testing.T) *server {
	t.Helper()
	dir := t.TempDir()
	certificate, key := selfSigned(t, time.Now().Add(-36*time.Hour))
	files := map[string]string{"mail.crt": certificate, "mail.key": key, "beanpole.toml": fmt.Sprintf(
		"[[listener]]\naddress = %q\ntls-cert = %q\ntls-key = %q\n[[limit]]\ntubes = [\"webhooks.*\"]\njobs = 300\n",
		freePort(t), filepath.Join(dir, "mail.crt"), filepath.Join(dir, "mail.key"))}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"--config", filepath.Join(dir, "beanpole.toml")}
	disk := smallDisk(t)
	if disk != "" {
		args = append(args, "-b", disk)
	}
	s := start(t, args...)
	s.say("use payments")
	for i := range 60 {
		s.say("put 1024 0 1", fmt.Sprintf(`{"order":%d,"customer":"cus_%05d","amount":%d.%02d,"currency":"EUR"}`, 48200+i, i*37, 10+i, i))
	}
	for range 8 {
		go workBadly(t.Context(), s.port, "payments")
	}
	s.put("webhooks.partner", `{"event":"order.shipped"}`, 320)
	keepBusy(t, s)
	if disk != "" {
		go keepFull(t.Context(), filepath.Join(disk, "filler"))
		s.say("use reports")
		for body := strings.Repeat("there is no room for this ", 2000); strings.HasPrefix(s.say("put 1024 0 60", body), "INSERTED"); {
		}
	}
	return s
}

func selfSigned(t *testing.T, end time.Time) (certificate, key string) {
	t.Helper()
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: end.AddDate(0, 0, -90), NotAfter: end, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, about, about, secret.Public(), secret)
	if err != nil {
		t.Fatal(err)
	}
	inner, err := x509.MarshalPKCS8PrivateKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: inner}))
}

// smallDisk returns a directory on its own small disk, or "" if the test cannot mount
// one.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", dir).CombinedOutput(); err != nil {
		t.Logf("without a full disk: %v\n%s", err, out)
		return ""
	}
	t.Cleanup(func() { exec.Command("umount", "-l", dir).Run() })
	return dir
}

// keepFull keeps the disk full with a file.
func keepFull(ctx context.Context, path string) {
	f, err := os.Create(path)
	if err != nil {
		return
	}
	defer f.Close()
	for size := 1 << 20; ctx.Err() == nil; size = max(size, 1<<10) {
		if _, err := f.Write(make([]byte, size)); err != nil {
			size /= 2
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// workBadly reserves jobs from a tube, buries some, and lets the rest time out.
func workBadly(ctx context.Context, address, tube string) {
	nc, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer nc.Close()
	context.AfterFunc(ctx, func() { nc.Close() })
	replies := bufio.NewReader(nc)
	do := func(command string) string {
		fmt.Fprintf(nc, "%s\r\n", command)
		line, _ := replies.ReadString('\n')
		return line
	}
	do("watch " + tube)
	do("ignore default")
	for n := 0; ; n++ {
		line := strings.Fields(do("reserve"))
		switch {
		case len(line) == 0:
			return
		case line[0] != "RESERVED": // DEADLINE_SOON, or the wait has ended
			time.Sleep(100 * time.Millisecond)
			continue
		}
		replies.ReadString('\n')
		if n%80 == 0 {
			do("bury " + line[1] + " 1024")
		}
		time.Sleep(1500 * time.Millisecond) // longer than the job's TTR
	}
}
