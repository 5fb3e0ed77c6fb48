package browser

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

var paints = flag.Int("paints", 0, "look at pages `N` times, and print how soon they are painted")

// If -paints is set, TestPaint measures the time to paint pages with 10,000 tubes in a
// browser without a cache, and their total size. It prints a Markdown table.
func TestPaint(t *testing.T) {
	if *paints == 0 {
		t.Skip("no -paints")
	}
	s := start(t)
	manyTubes(t, s, 10_000)
	ctx := browse(t)
	do(t, ctx, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, network.SetCacheDisabled, network.SetCacheDisabledParams{CacheDisabled: true})
		return err
	}))
	fmt.Print("| first view in Chromium | first paint, ms | loaded, ms | transferred, kB |\n|---|--:|--:|--:|\n")
	for _, page := range []struct{ name, path string }{{"overview", ""}, {"tubes", "tubes"}, {"a tube", "tube/tenant-7"}} {
		var painted, loaded []float64
		var weight float64
		for range *paints {
			do(t, ctx, visit(s.url(page.path)))
			const times = `(() => {
				const paint = performance.getEntriesByName('first-contentful-paint')[0], page = performance.getEntriesByType('navigation')[0];
				if (!paint || !page.loadEventEnd) return null;
				return [paint.startTime, page.loadEventEnd, performance.getEntriesByType('resource').reduce((sum, one) => sum + one.transferSize, page.transferSize)];
			})()`
			until(t, ctx, times)
			v := eval[[]float64](t, ctx, times)
			painted, loaded, weight = append(painted, v[0]), append(loaded, v[1]), v[2]
		}
		fmt.Printf("| %s | %s | %s | %.1f |\n", page.name, spread(painted), spread(loaded), weight/1000)
	}
}

// spread returns the median, minimum and maximum of times.
func spread(ms []float64) string {
	slices.Sort(ms)
	return fmt.Sprintf("%.0f (%.0f..%.0f)", ms[len(ms)/2], ms[0], ms[len(ms)-1])
}

// manyTubes puts a job into each of many tubes.
func manyTubes(t *testing.T, s *server, n int) {
	t.Helper()
	conn, err := net.Dial("tcp", s.port)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	go func() {
		for i := range n {
			fmt.Fprintf(conn, "use tenant-%d\r\nput 1024 0 60 5\r\nhello\r\n", i)
		}
	}()
	replies := bufio.NewReader(conn)
	for range n {
		for _, want := range []string{"USING ", "INSERTED "} {
			if line, err := replies.ReadString('\n'); err != nil || !strings.HasPrefix(line, want) {
				t.Fatal(line, err)
			}
		}
	}
}
