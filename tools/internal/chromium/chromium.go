// Package chromium finds and starts the browser for the project's tools. The browser is headless
// and makes no network requests of its own.
package chromium

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/chromedp/chromedp"
)

// Find returns the path of the browser: $STACKGLASS_CHROMIUM, or otherwise the first known browser
// in PATH. The error explains how to install a browser.
func Find() (string, error) {
	if named := os.Getenv("STACKGLASS_CHROMIUM"); named != "" {
		return named, nil
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("the browser Chromium was not found in PATH; install it (Debian: apt-get install chromium), or set STACKGLASS_CHROMIUM to its path")
}

// Open starts a browser with a page. Open returns the context of the page, and a function that ends
// the browser and waits until the browser's profile is deleted.
func Open(ctx context.Context, more ...chromedp.ExecAllocatorOption) (page context.Context, end func(), err error) {
	path, err := Find()
	if err != nil {
		return nil, nil, err
	}
	ctx, stop := chromedp.NewExecAllocator(ctx, Options(path, more...)...)
	page, closePage := chromedp.NewContext(ctx)
	end = func() {
		chromedp.Cancel(page)
		closePage()
		stop()
	}
	if err := chromedp.Do(page); err != nil {
		end()
		return nil, nil, fmt.Errorf("start %s: %w", path, err)
	}
	return page, end, nil
}

// Options returns the usual options for the browser at the given path, followed by the given
// additional options. Unless an option names a folder for the profile, the browser uses a new,
// empty profile on disk.
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
		// The popup of the address bar, which headless browsers do not show, is a page in a process of
		// its own, which took 6 % of the processor's time.
		chromedp.Flag("disable-features", "MediaRouter,NetworkTimeServiceQuerying,OptimizationHints,Translate,WebUIOmniboxPopup,WebUIOmniboxAimPopup"),
	}, more...)
}
