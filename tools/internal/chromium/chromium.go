// Package chromium finds the browser that the project's tools drive and says
// how to start it: headless, and silent on the network by itself, so that every
// request seen is the page's own.
package chromium

import (
	"errors"
	"os"
	"os/exec"

	"github.com/chromedp/chromedp"
)

// Find gives the path of the browser: the one that $STACKGLASS_CHROMIUM names,
// else the first known one in the path. The error says how to have one.
func Find() (string, error) {
	if named := os.Getenv("STACKGLASS_CHROMIUM"); named != "" {
		return named, nil
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("no chromium in the path; install it (Debian: apt-get install chromium) or name one in STACKGLASS_CHROMIUM")
}

// Options start the browser at path, with more options behind the usual ones.
// Unless one of them names a folder, its profile is a new, empty one on disk.
func Options(path string, more ...chromedp.ExecAllocatorOption) []chromedp.ExecAllocatorOption {
	return append([]chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path),
		chromedp.NoSandbox, chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck, chromedp.DisableGPU,
		chromedp.Flag("headless", true),
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true),
		chromedp.Flag("disable-dev-shm-usage", true),
	}, more...)
}
