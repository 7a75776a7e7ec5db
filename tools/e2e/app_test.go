package e2e

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
)

// TestInstalledPageOpensFiles checks that the browser offers to install the page, and that the
// installed page opens files that the operating system or another application passes to it.
func TestInstalledPageOpensFiles(t *testing.T) {
	needStage(t)
	trace := absolute(t, filepath.Join(rootFolder, "site", "demos", "matmul-naive.sgt"))
	want := truthOf(t, trace)
	p := openPage(t)
	p.keptOffline()

	read := callDevTools(p, page.GetAppManifest, page.GetAppManifestParams{})
	for _, problem := range read.Errors {
		t.Errorf("the browser reports an error in the manifest: %s", problem.Message)
	}
	if problems := callDevTools(p, page.GetInstallabilityErrors, cdp.Empty{}).InstallabilityErrors; len(problems) > 0 {
		said, _ := json.Marshal(problems)
		t.Errorf("the page cannot be installed: %s", said)
	}
	if id := callDevTools(p, page.GetAppID, cdp.Empty{}).AppID; id != p.server.origin+"/stackglass" {
		t.Errorf("app ID = %q, want %q", id, p.server.origin+"/stackglass")
	}

	// If the operating system opens a file with the page, the page receives a handle to the file
	// from the browser's queue. The browser in this test is not integrated with an operating
	// system, so the test replaces this queue.
	content, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	file := `new File([Uint8Array.from(atob(` + quoteText(base64.StdEncoding.EncodeToString(content)) + `), (c) => c.charCodeAt(0))], ` + quoteText(filepath.Base(trace)) + `)`
	const queue = `window.launchQueue.setConsumer = (f) => { window.launch = f; };`
	callDevTools(p, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: queue})
	p.reload()
	eval[bool](p, `(launch({ files: [{ kind: "file", getFile: async () => `+file+` }] }), true)`)
	if got := p.waitFinished(); got != want.Digest {
		t.Errorf("digest of a launched file = %s, want the command's digest %s", got, want.Digest)
	}

	p.goHome()
	if got := eval[string](p, `(async () => {
		const form = new FormData();
		form.append("files", `+file+`);
		return (await fetch("share", { method: "POST", body: form })).url;
	})()`); got != p.server.origin+"/?shared" {
		t.Errorf("URL after sharing a file = %s, want %s", got, p.server.origin+"/?shared")
	}
	p.openPath("?shared")
	if got := p.waitFinished(); got != want.Digest {
		t.Errorf("digest of a shared file = %s, want the command's digest %s", got, want.Digest)
	}
	if got := eval[string](p, `(async () => location.search + (await (await caches.open("shared")).keys()).length)()`); got != "0" {
		t.Errorf("query of the URL and number of cached shared files = %s, want 0", got)
	}
}
