package e2e

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/workers"
)

// sharedFiles returns the paths of the containers whose analysis is divided among workers. The
// containers are the demos and the beginnings of the real traces.
func sharedFiles(t *testing.T) (paths []string) {
	t.Helper()
	dir := t.TempDir()
	for _, d := range demos(t) {
		path := filepath.Join(dir, d.Name+".sgt")
		if err := os.WriteFile(path, demoFile(t, d.Name), 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	real := realTrace(t)
	for _, from := range []string{real, filepath.Join(filepath.Dir(real), "gemm.lackey.lz4"), filepath.Join(filepath.Dir(real), "jacobi2d.lackey.lz4")} {
		if _, err := os.Stat(from); err != nil {
			continue
		}
		path := filepath.Join(dir, strings.TrimSuffix(filepath.Base(from), ".lackey.lz4")+".sgt")
		runCommand(t, "convert", from, "--limit", "400000", "-o", path)
		paths = append(paths, path)
	}
	return paths
}

// attachFile attaches a file to a hidden input on the page, without notifying the page's
// program.
func (p *tab) attachFile(path string) {
	p.t.Helper()
	eval[bool](p, `(() => { document.getElementById("attached")?.remove();
		const input = document.createElement("input");
		input.type = "file", input.id = "attached", input.hidden = true;
		document.body.append(input);
		return true; })()`)
	root := callDevTools(p, dom.GetDocument, dom.GetDocumentParams{})
	node := callDevTools(p, dom.QuerySelector, dom.QuerySelectorParams{NodeID: root.Root.NodeID, Selector: "#attached"})
	callDevTools[dom.SetFileInputFilesParams, cdp.Empty](p, dom.SetFileInputFiles, dom.SetFileInputFilesParams{Files: []string{path}, NodeID: node.NodeID})
}

// analyseWith makes one of the page's workers analyse the attached file. It returns the result and
// the maximum number of workers that ran at the same time.
func (p *tab) analyseWith(start workers.Start) (done workers.Done, most int) {
	p.t.Helper()
	got := eval[struct {
		Type, Most int
		Body       string
		Progress   []string
	}](p, `new Promise((resolve, reject) => {
		const worker = new Worker(document.documentElement.dataset.worker, { name: "analysis" });
		const text = (buffer, most) => btoa(String.fromCharCode(...new Uint8Array(buffer).subarray(0, most)));
		const progress = [];
		worker.onmessage = ({ data }) => {
			if (data.type === `+number(workers.TypeProgress)+`) progress.push(text(data.body));
			if (data.exited !== undefined) reject(new Error(data.why));
			if (data.type !== `+number(workers.TypeDone)+` && data.type !== `+number(workers.TypeFailed)+`) return;
			worker.terminate();
			resolve({ Type: data.type, Body: text(data.body, 500), Progress: progress });
		};
		const body = Uint8Array.from(atob(`+quoteText(base64.StdEncoding.EncodeToString(start.Encode()))+`), (c) => c.charCodeAt(0)).buffer;
		worker.postMessage({ type: `+number(workers.TypeStart)+`, job: 1, body, attachment: document.getElementById("attached").files[0] });
	})`)
	bytes := func(text string) []byte {
		b, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			p.t.Fatal(err)
		}
		return b
	}
	for _, text := range got.Progress {
		progress, err := workers.DecodeProgress(bytes(text))
		if err != nil {
			p.t.Fatal(err)
		}
		most = max(most, int(progress.Workers))
	}
	if workers.Type(got.Type) != workers.TypeDone {
		p.t.Fatalf("the analysis failed: %q", bytes(got.Body))
	}
	done, err := workers.DecodeDone(bytes(got.Body)) // this function needs only the beginning of the profile
	if err != nil {
		p.t.Fatal(err)
	}
	return done, most
}

func number(t workers.Type) string { return strconv.Itoa(int(t)) }

// shareAll analyses each file with several numbers of workers, in many short segments. File number
// i is analysed first with counts[i] workers, and then with counts[i+1] workers. The list "counts"
// is used cyclically.
func shareAll(t *testing.T, p *tab, files []string, counts ...uint32) {
	t.Helper()
	spec := analysis.Spec{Kinds: trace.DataKinds, Analyses: analysis.Usual, LineBytes: []uint32{64}, Utilisation: []uint64{48 << 10, 1 << 20, 32 << 20}, UtilisationWays: []uint32{12, 16, 16}}
	shared := false
	for i, file := range files {
		want := truthOf(t, file)
		p.attachFile(file)
		for n := range min(2, len(counts)) {
			count := counts[(i+n)%len(counts)]
			name := filepath.Base(file)
			start := workers.Start{Key: name + strconv.Itoa(int(count)), Name: name, Spec: spec, Workers: count, SegmentReferences: uint32(want.References/20 + 1)}
			done, most := p.analyseWith(start)
			if done.Digest != want.Digest {
				t.Errorf("%s with %d workers: digest = %s, want the command's digest %s", name, count, done.Digest, want.Digest)
			}
			shared = shared || most > 1
		}
	}
	if !shared {
		t.Error("no run used several workers at the same time")
	}
}

// TestSharedRuns checks that, for any number of workers, the digests equal the command's digests.
// Tests in core/analysis and workers, which need no browser, check that every trace can be divided
// among any of these numbers of workers.
func TestSharedRuns(t *testing.T) {
	needStage(t)
	shareAll(t, openPage(t), sharedFiles(t), 1, 2, 4, 8)
}

// TestHelpersOnEveryHost checks that the page's policy allows helper workers to start in every
// kind of hosting.
func TestHelpersOnEveryHost(t *testing.T) {
	needStage(t)
	files := sharedFiles(t)
	for _, h := range allHostings {
		if h.name == "Cloudflare" {
			continue // this hosting serves the same files as the hosting "serve"
		}
		t.Run(h.name, func(t *testing.T) {
			p := newTab(t, h.open(t))
			p.openPath("/")
			p.waitReady()
			shareAll(t, p, files[len(files)-1:], 3)
		})
	}
}

// TestWorkersSetting checks that the setting for the number of workers offers no more workers than
// there are processors.
func TestWorkersSetting(t *testing.T) {
	needStage(t)
	p := openPage(t)
	if got, want := eval[int](p, `document.getElementById("workers").length`), eval[int](p, `1 + Math.min(8, navigator.hardwareConcurrency)`); got != want {
		t.Errorf("choices for the number of workers = %d, want %d", got, want)
	}
}
