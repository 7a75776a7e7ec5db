package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"

	"github.com/stackglass/stackglass/tools/internal/chromium"
)

// rootFolder is the repository's root folder.
const rootFolder = "../.."

// sharedStage is the state that all tests share, or nil if end-to-end tests are disabled.
var sharedStage *stage

// A stage consists of a running browser and the decoy servers.
type stage struct {
	ctx       context.Context // the browser's context, which is the parent of the contexts of all tabs
	program   string          // path of the stackglass command
	files     string          // folder for the files of the browser and of the command
	anyHost   *decoy          // the decoy for every host except 127.0.0.1
	neighbour *decoy          // the decoy on a second port of 127.0.0.1
	visited   *server         // server for tests whose browser may have visited the page before; see openPage
}

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if os.Getenv("STACKGLASS_E2E") == "" {
		return m.Run()
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	dir, err := os.MkdirTemp("", "stackglass-e2e")
	if err == nil {
		defer os.RemoveAll(dir)
		sharedStage, err = newStage(ctx, dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	defer func() {
		chromedp.Cancel(sharedStage.ctx)
		if sharedStage.visited != nil {
			sharedStage.visited.stopServer()
		}
	}()
	return m.Run()
}

// newStage starts the decoys and the browser. The files of the browser and of the command are in
// the given folder.
func newStage(ctx context.Context, dir string) (*stage, error) {
	s := &stage{files: filepath.Join(dir, "files")}
	var err error
	if s.program, err = commandPath(); err != nil {
		return nil, err
	}
	if s.anyHost, err = newDecoy(); err != nil {
		return nil, err
	}
	if s.neighbour, err = newDecoy(); err != nil {
		return nil, err
	}
	browserPath, err := chromium.Find()
	if err != nil {
		return nil, err
	}
	profile := filepath.Join(dir, "profile")
	if err := errors.Join(os.Mkdir(profile, 0o700), os.Mkdir(s.files, 0o700)); err != nil {
		return nil, err
	}
	if s.ctx, err = startBrowser(ctx, browserPath, profile, s.anyHost.port); err != nil {
		return nil, err
	}
	events := true
	_, err = chromedp.CallBrowser(s.ctx, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{
		Behavior: browser.SetDownloadBehaviorBehaviorAllowAndName, DownloadPath: s.files, EventsEnabled: &events,
	})
	return s, err
}

// startBrowser starts Chromium with a profile that is stored on disk.
func startBrowser(ctx context.Context, path, profile string, anyHost int, more ...chromedp.ExecAllocatorOption) (context.Context, error) {
	ctx, _ = chromedp.NewExecAllocator(ctx, chromium.Options(path, append(flags(profile, anyHost), more...)...)...)
	browser, _ := chromedp.NewContext(ctx)
	if err := chromedp.Do(browser); err != nil {
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	return browser, nil
}

func flags(profile string, anyHost int) []chromedp.ExecAllocatorOption {
	return []chromedp.ExecAllocatorOption{
		chromedp.UserDataDir(profile),
		chromedp.Flag("disable-client-side-phishing-detection", true),
		chromedp.Flag("disable-default-apps", true),
		chromedp.Flag("disable-domain-reliability", true),
		chromedp.Flag("disable-extensions", true),
		chromedp.Flag("disable-field-trial-config", true),
		chromedp.Flag("metrics-recording-only", true),
		chromedp.Flag("no-pings", true),
		chromedp.Flag("safebrowsing-disable-auto-update", true),
		// Chromium must not slow down the tab of the running test while a tab of another test is in
		// the foreground.
		chromedp.Flag("disable-background-timer-throttling", true),
		chromedp.Flag("disable-backgrounding-occluded-windows", true),
		chromedp.Flag("disable-renderer-backgrounding", true),
		// Chromium itself contacts Google, so lookups of Google's host names fail instead of
		// returning the decoy's address. If the page contacted Google, the watch on the page would
		// still detect the request.
		chromedp.Flag("host-resolver-rules", "MAP *.google.com ~NOTFOUND, MAP *.googleapis.com ~NOTFOUND, MAP *.gvt1.com ~NOTFOUND, "+
			"MAP * 127.0.0.1:"+strconv.Itoa(anyHost)+", EXCLUDE 127.0.0.1"),
	}
}

// commandPath returns the path of the command under test.
func commandPath() (string, error) {
	path := os.Getenv("STACKGLASS_PROGRAM")
	if path == "" {
		path = filepath.Join(rootFolder, "bin", "stackglass")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("there is no command at %s: run make build, or set STACKGLASS_PROGRAM to the path of the command", path)
	}
	return path, nil
}

// needStage skips the test if end-to-end tests are disabled.
func needStage(t *testing.T) *stage {
	t.Helper()
	if sharedStage == nil {
		t.Skip("skipped: set STACKGLASS_E2E=1 to run end-to-end tests; they need make build and Chromium")
	}
	return sharedStage
}
