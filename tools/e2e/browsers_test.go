package e2e

import "testing"

// TestOtherBrowsers checks in Firefox and WebKit what TestDropFile, TestOffline and
// TestWorkerKilledAtRandom check in Chromium. The test opens a demo and a file, reloads the page,
// and uses the page without a server. The test also resumes an analysis that was interrupted
// because the page was closed. All digests must equal the digests that the command prints.
func TestOtherBrowsers(t *testing.T) {
	for name, start := range otherBrowsers {
		t.Run(name, func(t *testing.T) {
			needStage(t)
			if !isSoak {
				t.Skip("skipped: only make soak tests browsers other than Chromium")
			}
			profile := t.TempDir()
			b, missing := start(t, profile)
			if b == nil {
				t.Skip("skipped: " + name + ": " + missing)
			}
			b.do("WebDriver:SetTimeouts", map[string]any{"script": waitLimit.Milliseconds(), "pageLoad": waitLimit.Milliseconds()})
			s := serveCommand(t, ":0")
			b.visit(s.origin + "/")
			b.waitReady()

			demo := demos(t)[0]
			b.clickElement("#demo-" + demo.Name)
			if got, want := b.waitFinished(), truthOf(t, "demo:"+demo.Name).Digest; got != want {
				t.Errorf("digest of the demo = %s, want the command's digest %s", got, want)
			}
			b.visit(s.origin + "/")
			b.waitReady()
			b.waitTrue("the stored analysis", `document.querySelector("#kept")?.textContent.includes(`+quoteText(demo.Title)+`)`)
			b.pickFiles(shortTrace(t))
			if got, want := b.waitFinished(), truthOf(t, shortTrace(t)).Digest; got != want {
				t.Errorf("digest of a file = %s, want the command's digest %s", got, want)
			}

			// The browser leaves the page in the middle of an analysis. WebKit suspends the page
			// and keeps it in memory.
			trace := longTrace(t, 30e6)
			b.visit(s.origin + "/")
			b.waitReady()
			before := b.textOf("String(" + storedEntries + ")")
			b.pickFiles(trace)
			b.waitTrue("a checkpoint", storedEntries+" > "+before)
			b.visit("about:blank")
			b.visit(s.origin + "/")
			b.waitReady()
			b.waitTrue("the interrupted analysis", `document.querySelector("#kept .chip.interrupted")`)
			b.pickFiles(trace)
			if got, want := b.waitFinished(), truthOf(t, trace).Digest; got != want {
				t.Errorf("digest after an interruption = %s, want the command's digest %s", got, want)
			}

			b.waitTrue("the site is stored for offline use", `document.getElementById("offline-state").textContent === `+quoteText(kept))
			s.stopServer()
			b.visit(s.origin + "/")
			b.waitReady()
			b.pickFiles(shortTrace(t))
			if got, want := b.waitFinished(), truthOf(t, shortTrace(t)).Digest; got != want {
				t.Errorf("digest without a server = %s, want the command's digest %s", got, want)
			}
		})
	}
}
