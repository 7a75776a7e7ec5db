package e2e

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/ulikunitz/xz"
)

// lateUnpackers lists the compressed formats whose decoders the page loads on demand.
var lateUnpackers = map[string]func(io.Writer) (io.WriteCloser, error){
	"zstd": func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) },
	"xz":   func(w io.Writer) (io.WriteCloser, error) { return xz.NewWriter(w) },
}

// TestUnpackersOffline checks that compressed files can be opened without the server, even if the
// first visit did not need an unpacker.
func TestUnpackersOffline(t *testing.T) {
	needStage(t)
	p := firstVisit(t)
	p.keptOffline()
	p.server.stopServer()
	p.reload()
	text := unpacked(t, lackeyTrace(t))
	for packing, packer := range lateUnpackers {
		path := p.writeFile("offline."+packing, pack(t, text, packer))
		p.dropFiles(path)
		p.waitTrue("the result of "+path, `document.title.startsWith("offline.`+packing+`") && !document.querySelector("[data-running]")`)
		if got, want := p.waitFinished(), truthOf(t, path).Digest; got != want {
			t.Errorf("digest of %s offline = %s, want %s", path, got, want)
		}
	}
}

// TestUnpackersOnStaticHost checks that the unpackers also work if a plain server serves the page
// from a subfolder.
func TestUnpackersOnStaticHost(t *testing.T) {
	needStage(t)
	p := newTab(t, serveFolder(t, filepath.Join(rootFolder, "site", "dist")))
	text := unpacked(t, lackeyTrace(t))
	for packing, packer := range lateUnpackers {
		path := p.writeFile("hosted."+packing, pack(t, text, packer))
		p.openPath("/")
		p.waitReady()
		p.dropFiles(path)
		if got, want := p.waitFinished(), truthOf(t, path).Digest; got != want {
			t.Errorf("digest of %s = %s, want %s", path, got, want)
		}
	}
}

func unpacked(t *testing.T, path string) []byte {
	t.Helper()
	packed, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(lz4.NewReader(bytes.NewReader(packed)))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestNoUnpacker checks what the page does with compressed files if it cannot load the unpackers.
func TestNoUnpacker(t *testing.T) {
	needStage(t)
	p := newTab(t, newCountingProxy(t, serveCommand(t, ":0"), "/assets/unpack.*.wasm").server)
	// Without the unpackers, the site cannot be stored for offline use either.
	p.watch.allowFault("assets/unpack.")
	p.watch.allowFault("Failed to load resource: the server responded with a status of 404")
	p.openPath("/")
	p.waitReady()
	text := unpacked(t, lackeyTrace(t))
	for packing, packer := range lateUnpackers {
		p.dropFiles(p.writeFile("a.lackey."+packing, pack(t, text, packer)))
		said := p.waitProblem()
		t.Log(said)
		if !regexp.MustCompile(`^a\.lackey\.` + packing + ` is compressed with ` + packing + `, and the decompression program could not be loaded \(.*404.*go online and reload`).MatchString(said) {
			t.Errorf("problem = %q, want a missing decompression program", said)
		}
		p.waitGone("[data-running]")
		p.clickElement("#problem-dismiss")
		p.waitGone("#problem")
	}
	path := p.writeFile("plain.lackey", text)
	p.dropFiles(path)
	if got, want := p.waitFinished(), truthOf(t, path).Digest; got != want {
		t.Errorf("digest after the error = %s, want %s", got, want)
	}
}

// TestDamagedCompressedFiles checks what the page does with truncated and damaged compressed files
// that need an unpacker. The page and the command must show the same results and messages.
func TestDamagedCompressedFiles(t *testing.T) {
	needStage(t)
	p := openPage(t)
	text := unpacked(t, lackeyTrace(t))
	text = bytes.Repeat(text, 1+4<<20/len(text))
	for packing, packer := range lateUnpackers {
		whole := pack(t, text, packer)
		damaged := bytes.Clone(whole)
		damaged[len(damaged)*2/3] ^= 0x10
		for want, content := range map[string][]byte{"truncated": whole[:len(whole)*3/4], "damaged": damaged} {
			path := p.writeFile(want+"."+packing, content)
			p.dropFiles(path)
			said := p.waitProblem()
			t.Log(said)
			if !regexp.MustCompile(`^The analysis of ` + want + `\.` + packing + ` is partial: .*the ` + packing + ` stream is ` + want + ` after [0-9]+ decompressed bytes`).MatchString(said) {
				t.Errorf("problem for %s = %q, want a partial analysis and the reason", path, said)
			}
			p.waitGone("[data-running]")
			if got := p.waitFinished(); got != truthOf(t, path).Digest {
				t.Errorf("digest of %s = %s, want the command's digest %s", path, got, truthOf(t, path).Digest)
			}
			p.clickElement("#problem-dismiss")
			p.waitGone("#problem")
			p.pressKeys("\x1b")
			p.waitFor("#kept-title")
		}
	}
}

// TestReloadWhileUnpacking checks that, if the page is reloaded while it reads a compressed file,
// the run resumes from its checkpoint and can be paused. The result must be the same as without an
// interruption.
func TestReloadWhileUnpacking(t *testing.T) {
	needStage(t)
	trace := longPacked(t, 30e6)
	p := openPage(t)
	p.dropFiles(trace)
	p.waitTrue("a checkpoint", storedEntries+" > 0")
	p.reload()
	p.openPath("/")
	p.waitReady()
	p.waitFor("#kept .go-on")
	p.clickElement("#kept .go-on")
	p.waitFor("#note")
	p.startPaused(func() { p.pickFiles(trace) })
	p.clickElement("#run-pause")
	if got, want := p.waitFinished(), truthOf(t, trace).Digest; got != want {
		t.Errorf("digest after a reload = %s, want the command's digest %s", got, want)
	}
}

// longPacked returns the path of a compressed trace with at least the given number of references.
// The trace consists of copies of the real trace in consecutive zstd frames.
func longPacked(t *testing.T, references uint64) string {
	t.Helper()
	from := realTrace(t)
	once := truthOf(t, from).References
	frame := pack(t, unpacked(t, from), lateUnpackers["zstd"])
	path := filepath.Join(t.TempDir(), "long.zst")
	if err := os.WriteFile(path, bytes.Repeat(frame, int((references+once-1)/once)), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
