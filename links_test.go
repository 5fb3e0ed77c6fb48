package beanpole_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

// Links between pages are valid in this tree, in an installation and in the archives of a
// release.
func TestLinks(t *testing.T) {
	for name, tree := range map[string]fs.FS{"tree": os.DirFS("."), "installed": installed(t), "archive": archive(t)} {
		t.Run(name, func(t *testing.T) {
			pages, headings := 0, map[string]map[string]bool{}
			fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
				switch {
				case err != nil:
					t.Error(err)
				case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && name != "." || d.Name() == "testdata" || name == "build"):
					return fs.SkipDir
				case strings.HasSuffix(name, ".md"):
					pages++
					for _, link := range deadLinks(tree, name, headings) {
						t.Errorf("%s: dead link %s", name, link)
					}
				}
				return nil
			})
			if pages < 40 {
				t.Errorf("only %d pages", pages)
			}
		})
	}
}

// deadLinks finds dead links of each kind.
func TestDeadLinks(t *testing.T) {
	tree := fstest.MapFS{
		"doc/a.md": {Data: []byte("# A\n## 1. One `x`, two\n## Same\n## Same\n```\n# no heading\n```\n" +
			"[](b.md) [](../c) [](#1-one-x-two) [](a.md#same-1) [](https://example.com/x) <img src=\"p.png\">")},
		"doc/b.md": {}, "c/file": {}, "doc/p.png": {},
	}
	for text, dead := range map[string]bool{
		"":                           false,
		"[x](d.md)":                  true,
		"[x](../../c)":               true,
		"[x](#no-heading)":           true,
		"[x](b.md#a)":                true,
		`<source srcset="q.png">`:    true,
		"[x](a.md#same-2)":           true,
		"[two\nlines](../doc/d.md)":  true,
		"[two\nlines](../doc/b.md#)": false,
	} {
		tree["doc/e.md"] = &fstest.MapFile{Data: append(tree["doc/a.md"].Data[:len(tree["doc/a.md"].Data):len(tree["doc/a.md"].Data)], text...)}
		if got := deadLinks(tree, "doc/e.md", map[string]map[string]bool{}); len(got) > 0 != dead {
			t.Errorf("%q: %q", text, got)
		}
	}
}

var (
	fence   = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)|(?:src|srcset)="([^"]+)"`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	dropped = regexp.MustCompile(`[^\p{L}\p{N} _-]`) // characters that are dropped in an anchor
)

// deadLinks returns the links of a page that have no target in the tree. It caches the
// anchors of the pages in known.
func deadLinks(tree fs.FS, page string, known map[string]map[string]bool) (dead []string) {
	text, _ := fs.ReadFile(tree, page)
	for _, m := range link.FindAllSubmatch(fence.ReplaceAll(text, nil), -1) {
		to := string(m[1]) + string(m[2])
		if strings.Contains(to, "://") {
			continue
		}
		name, anchor, _ := strings.Cut(to, "#")
		target := page
		if name != "" {
			target = path.Join(path.Dir(page), name)
		}
		if anchor != "" && known[target] == nil {
			known[target] = anchors(tree, target)
		}
		if _, err := fs.Stat(tree, target); err != nil || anchor != "" && !known[target][anchor] {
			dead = append(dead, to)
		}
	}
	return dead
}

// anchors returns the anchors of the headings of a page, as GitHub generates them.
func anchors(tree fs.FS, page string) map[string]bool {
	text, _ := fs.ReadFile(tree, page)
	all := map[string]bool{}
	for _, m := range heading.FindAllSubmatch(fence.ReplaceAll(text, nil), -1) {
		name := strings.ToLower(string(link.ReplaceAll(m[1], []byte("]"))))
		name = strings.ReplaceAll(dropped.ReplaceAllString(name, ""), " ", "-")
		unique := name
		for i := 1; all[unique]; i++ {
			unique = name + "-" + strconv.Itoa(i)
		}
		all[unique] = true
	}
	return all
}

// installed returns the documentation as packages and "make install" install it.
func installed(t *testing.T) fs.FS {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("make", "documentation", "TO="+dir).CombinedOutput(); err != nil {
		t.Fatalf("make documentation: %v\n%s", err, out)
	}
	return os.DirFS(dir)
}

// archive returns the files of this tree that .goreleaser.yaml adds to archives.
func archive(t *testing.T) fs.FS {
	t.Helper()
	text, err := os.ReadFile(".goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	tree := fstest.MapFS{}
	for _, m := range regexp.MustCompile(`(?m)^      - ([^:\s]+)$`).FindAllSubmatch(text, -1) {
		names, err := fs.Glob(os.DirFS("."), string(m[1]))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			data, _ := os.ReadFile(name)
			tree[name] = &fstest.MapFile{Data: data}
		}
	}
	return tree
}
