package e2e

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
)

// awaitDownload calls a function that triggers a download, and returns the name and the path of the
// downloaded file.
func (p *tab) awaitDownload(what func()) (name, path string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, waitLimit)
	defer cancel()
	var mu sync.Mutex
	names := map[string]string{}
	done := make(chan string, 1)
	err := chromedp.ListenBrowser(ctx, func(ev any) {
		switch ev := ev.(type) {
		case *browser.EventDownloadWillBegin:
			mu.Lock()
			names[ev.GUID] = ev.SuggestedFilename
			mu.Unlock()
		case *browser.EventDownloadProgress:
			if ev.State == "completed" {
				select {
				case done <- ev.GUID:
				default: // the test has ended; a listener that blocks would stop the browser
				}
			}
		}
	})
	if err != nil {
		p.t.Fatal(err)
	}
	what()
	select {
	case id := <-done:
		mu.Lock()
		defer mu.Unlock()
		return names[id], filepath.Join(sharedStage.files, id)
	case <-ctx.Done():
		p.t.Fatalf("timeout while waiting for a download\n%s", p.pageText())
	}
	return "", ""
}

// fileTime is the modification time of all files that tests create. The time is constant, because
// the page recognises a file by its modification time.
var fileTime = time.Date(2024, 3, 1, 12, 0, 0, 0, time.UTC)

// writeFile creates a file for the page to open.
func (p *tab) writeFile(name string, content []byte) string {
	p.t.Helper()
	path := filepath.Join(p.t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o644); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Chtimes(path, fileTime, fileTime); err != nil {
		p.t.Fatal(err)
	}
	return path
}

func (p *tab) read(path string) []byte {
	p.t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		p.t.Fatal(err)
	}
	return content
}
