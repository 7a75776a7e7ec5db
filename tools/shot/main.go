// Command shot takes the picture in README.md: the page, served by the command, with the miss-ratio curve
// of a demo.
//
//	go run ./tools/shot -out site/screenshot.png
//
// It needs bin/stackglass with the page inside, and Chromium.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/stackglass/stackglass/tools/internal/chromium"
)

func main() {
	out := flag.String("out", "site/screenshot.png", "the picture to write")
	program := flag.String("program", "bin/stackglass", "the command that serves the page")
	demo := flag.String("demo", "array-list", "the demo to show")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := shoot(ctx, *program, *demo, *out); err != nil {
		fmt.Fprintln(os.Stderr, "shot:", err)
		os.Exit(1)
	}
}

// shoot serves the page, takes the picture and ends what it started.
func shoot(ctx context.Context, program, demo, out string) error {
	url, stop, err := serve(program)
	if err != nil {
		return err
	}
	defer stop()
	picture, err := capture(ctx, url, demo)
	if err != nil {
		return err
	}
	return os.WriteFile(out, picture, 0o644)
}

var address = regexp.MustCompile(`http://[^ ]+`)

// serve starts the command's server on a free port and returns its address.
func serve(program string) (url string, stop func(), err error) {
	server := exec.Command(program, "serve", "--no-browser", "--http", "127.0.0.1:0")
	server.Stderr = os.Stderr
	said, err := server.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := server.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		server.Process.Signal(os.Interrupt)
		server.Wait()
	}
	line, err := bufio.NewReader(said).ReadString('\n')
	if err != nil && err != io.EOF {
		stop()
		return "", nil, err
	}
	if url = address.FindString(line); url == "" {
		stop()
		return "", nil, errors.New(program + " serve printed no address")
	}
	return url, stop, nil
}

// capture analyses the demo in a new browser and photographs the Caches view.
func capture(ctx context.Context, url, demo string) ([]byte, error) {
	ctx, end, err := chromium.Open(ctx, chromedp.Flag("hide-scrollbars", true))
	if err != nil {
		return nil, err
	}
	defer end()
	err = chromedp.Do(ctx,
		chromedp.EmulateViewport(1280, 800, chromedp.EmulateScale(1.4)),
		chromedp.Navigate(url),
		chromedp.Click("#demo-"+demo),
		chromedp.WaitVisible("#digest"),
		chromedp.KeyEvent("3"),
		chromedp.WaitVisible("#preset"),
		// The chart is drawn a frame after the view.
		chromedp.Sleep(500*time.Millisecond),
	)
	if err != nil {
		return nil, fmt.Errorf("driving the page: %w", err)
	}
	return chromedp.Run(ctx, chromedp.CaptureScreenshot())
}
