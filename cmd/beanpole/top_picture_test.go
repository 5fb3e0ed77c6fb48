package main

import (
	"bytes"
	"flag"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hinshun/vt10x"

	"github.com/beanpole-mq/beanpole/client/beanpoletest"
)

var topPicture = flag.String("top.picture", "", "write a picture of top to this SVG `FILE`")

// TestTopPicture writes the picture of top in doc/cli.md if -top.picture is set:
//
//	go test ./cmd/beanpole -run TestTopPicture -top.picture "$PWD/doc/top.svg"
func TestTopPicture(t *testing.T) {
	if *topPicture == "" {
		t.Skip("no -top.picture")
	}
	demo := filepath.Join(t.TempDir(), "demo")
	if out, err := exec.Command("go", "build", "-C", "../../bench", "-o", demo, "./demo").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	srv := beanpoletest.NewServer(t)
	busy := exec.Command(demo, srv.Addr)
	if err := busy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { busy.Process.Kill(); busy.Wait() })
	terminal := startTop(t, srv.Addr, "2s", 100, 19)
	terminal.wait(`reports +900 +[12]\ds `)
	terminal.wait(`reports +900 +[3-5]\ds `) // by then all tubes have their rates
	terminal.wait(`(?m)^.!billing\.retry .* \+\d`)
	terminal.press("g")
	terminal.wait(`(?m)^>!`)
	terminal.term.Lock()
	picture := drawTerminal(terminal.term, "beanpole top: tubes with their jobs, rates and workers")
	terminal.term.Unlock()
	if err := os.WriteFile(*topPicture, picture, 0o644); err != nil {
		t.Fatal(err)
	}
}

// Sizes of a terminal's picture, in pixels.
const (
	cellWidth  = 8.43
	lineHeight = 19
	margin     = 16
)

// terminalColours are the colours of the console's dark theme.
var terminalColours = map[vt10x.Color]string{vt10x.Red: "#f08a76", vt10x.LightRed: "#f08a76", vt10x.DefaultFG: "#eceae4", vt10x.DefaultBG: "#131412"}

// drawTerminal draws the screen of a terminal as SVG, with a text for each run of cells
// with the same attributes.
func drawTerminal(term vt10x.View, label string) []byte {
	columns, lines := term.Size()
	var out bytes.Buffer
	width, height := 2*margin+float64(columns)*cellWidth, 2*margin+lines*lineHeight
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %d" width="%.0f" height="%d" role="img" aria-label="%s">`, width, height, width, height, label)
	fmt.Fprintf(&out, `<rect width="100%%" height="100%%" rx="10" fill="%s"/>`+"\n", terminalColours[vt10x.DefaultBG])
	out.WriteString(`<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,DejaVu Sans Mono,monospace" font-size="14">` + "\n")
	for y := range lines {
		for x := 0; x < columns; {
			first := term.Cell(x, y)
			var text strings.Builder
			from := x
			for ; x < columns && looks(term.Cell(x, y)) == looks(first); x++ {
				text.WriteRune(max(term.Cell(x, y).Char, ' '))
			}
			drawRun(&out, from, y, text.String(), first)
		}
	}
	out.WriteString("</g></svg>\n")
	return out.Bytes()
}

// looks returns the attributes of a cell, without its character.
func looks(g vt10x.Glyph) vt10x.Glyph {
	g.Char = 0
	return g
}

const attrBold = 4 // of vt10x

// drawRun draws a run of cells with the same attributes.
func drawRun(out *bytes.Buffer, x, y int, text string, cell vt10x.Glyph) {
	left, top, cells := margin+float64(x)*cellWidth, margin+y*lineHeight, float64(len([]rune(text)))
	if cell.BG != vt10x.DefaultBG {
		fmt.Fprintf(out, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n", left, top, cells*cellWidth, lineHeight, terminalColours[cell.BG])
	}
	shown := strings.ReplaceAll(strings.TrimRight(text, " "), " ", "\u00a0") // which is kept
	if shown == "" {
		return
	}
	weight := ""
	if cell.Mode&attrBold != 0 {
		weight = ` font-weight="700"`
	}
	fmt.Fprintf(out, `<text x="%.1f" y="%d" fill="%s"%s textLength="%.1f" lengthAdjust="spacingAndGlyphs">%s</text>`+"\n",
		left, top+14, terminalColours[cell.FG], weight, float64(len([]rune(shown)))*cellWidth, html.EscapeString(shown))
}
