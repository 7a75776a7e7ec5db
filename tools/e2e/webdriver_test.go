package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// elementKey is the key that marks an element in WebDriver's messages.
const elementKey = "element-6066-11e4-a52e-4f735466cecf"

// otherBrowser is a browser other than Chromium, with one tab. Firefox is controlled with
// Marionette, its own protocol over a TCP connection. WebKit is controlled with WebDriver. Both
// protocols have the same commands.
type otherBrowser struct {
	t          *testing.T
	send       func(command string, parameters any) (json.RawMessage, error)
	endBrowser func()                // kills all processes of the browser
	leaveCrash func(b *otherBrowser) // opens another tab after a tab has crashed
	tabs       []string              // names of the processes that run the content of tabs, as the kernel shortens them
	group      int                   // id of the process group of the browser
	// keepsData is true if the browser stores data in its profile, where a new browser with the
	// same profile finds the data. MiniBrowser never does this while WebDriver controls it.
	keepsData bool
}

// otherBrowsers contains, for each browser, a function that starts the browser with a profile. If
// the browser is not installed, the function returns nil and the reason.
var otherBrowsers = map[string]func(t *testing.T, profile string) (*otherBrowser, string){
	"Firefox": startFirefox, "WebKit": startWebKit,
}

// startProgram starts a program in its own process group, and kills this group when the test ends.
// It returns the id of the group, and a function that kills the group earlier.
func startProgram(t *testing.T, env []string, name string, arguments ...string) (group int, end func()) {
	t.Helper()
	cmd := exec.Command(name, arguments...)
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	end = func() {
		if !ended {
			ended = true
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			_ = cmd.Wait()
		}
	}
	t.Cleanup(end)
	return cmd.Process.Pid, end
}

// freePort returns a port that no program is using at the moment.
func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
}

// startFirefox starts Firefox in headless mode.
func startFirefox(t *testing.T, profile string) (*otherBrowser, string) {
	path, err := exec.LookPath("firefox-esr")
	if err != nil {
		if path, err = exec.LookPath("firefox"); err != nil {
			return nil, "firefox-esr is not installed"
		}
	}
	port := freePort(t)
	preferences := `user_pref("marionette.port", ` + port + `);
user_pref("app.update.enabled", false);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("browser.aboutwelcome.enabled", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("toolkit.telemetry.reportingpolicy.firstRun", false);
user_pref("network.captive-portal-service.enabled", false);
user_pref("network.connectivity-service.enabled", false);
user_pref("dom.max_script_run_time", 0);
user_pref("browser.sessionstore.resume_from_crash", false);
user_pref("toolkit.startup.max_resumed_crashes", -1);
`
	if err := os.WriteFile(filepath.Join(profile, "user.js"), []byte(preferences), 0o600); err != nil {
		t.Fatal(err)
	}
	group, end := startProgram(t, []string{"MOZ_HEADLESS=1", "HOME=" + profile}, path, "--marionette", "--no-remote", "--profile", profile, "about:blank")
	conn := dialUntilOpen(t, "Firefox", "127.0.0.1:"+port)
	t.Cleanup(func() { conn.Close() })
	m := &marionetteConn{conn: conn, in: bufio.NewReader(conn)}
	if _, err := m.read(); err != nil { // read the message that Firefox sends first
		t.Fatal(err)
	}
	b := &otherBrowser{t: t, send: m.send, endBrowser: end, leaveCrash: openTab, tabs: []string{"Web Content", "Isolated Web Co"}, group: group, keepsData: true}
	b.do("WebDriver:NewSession", map[string]any{"capabilities": map[string]any{"alwaysMatch": map[string]any{"unhandledPromptBehavior": "accept"}}})
	return b, ""
}

// openTab opens a tab in Firefox, and directs all later commands to this tab.
func openTab(b *otherBrowser) {
	b.t.Helper()
	opened := b.do("WebDriver:NewWindow", map[string]any{"type": "tab"})
	var tab struct{ Handle string }
	if err := json.Unmarshal(opened, &tab); err != nil {
		b.t.Fatalf("%s: %v", opened, err)
	}
	b.do("WebDriver:SwitchToWindow", map[string]any{"handle": tab.Handle})
}

// marionetteConn is a connection to Firefox. A message consists of its length in bytes, a
// colon, and a JSON list. The list is [0, number, command, parameters] or [1, number, error,
// result].
type marionetteConn struct {
	conn   net.Conn
	in     *bufio.Reader
	number int
}

func (m *marionetteConn) read() (json.RawMessage, error) {
	digits, err := m.in.ReadString(':')
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(strings.TrimSuffix(digits, ":"))
	if err != nil {
		return nil, err
	}
	text := make([]byte, n)
	_, err = io.ReadFull(m.in, text)
	return text, err
}

func (m *marionetteConn) send(command string, parameters any) (json.RawMessage, error) {
	m.number++
	text, err := json.Marshal([]any{0, m.number, command, parameters})
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintf(m.conn, "%d:%s", len(text), text); err != nil {
		return nil, err
	}
	answer, err := m.read()
	if err != nil {
		return nil, err
	}
	var parts [4]json.RawMessage
	if err := json.Unmarshal(answer, &parts); err != nil {
		return nil, err
	}
	if string(parts[2]) != "null" {
		return nil, errors.New(string(parts[2]))
	}
	var result struct{ Value json.RawMessage }
	if json.Unmarshal(parts[3], &result) == nil && result.Value != nil {
		return result.Value, nil
	}
	return parts[3], nil
}

// startWebKit starts WebKitGTK's MiniBrowser on a virtual display.
func startWebKit(t *testing.T, profile string) (*otherBrowser, string) {
	for _, program := range []string{"WebKitWebDriver", "Xvfb"} {
		if _, err := exec.LookPath(program); err != nil {
			return nil, program + " is not installed"
		}
	}
	browsers, err := filepath.Glob("/usr/lib/*/webkit2gtk-4.*/MiniBrowser")
	if err != nil || len(browsers) == 0 {
		return nil, "MiniBrowser is not installed"
	}
	number, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer number.Close()
	screen := exec.Command("Xvfb", "-displayfd", "3", "-screen", "0", "1440x900x24", "-nolisten", "tcp")
	screen.ExtraFiles = []*os.File{w}
	err = screen.Start()
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = screen.Process.Kill()
		_ = screen.Wait()
	})
	line, err := bufio.NewReader(number).ReadString('\n')
	if err != nil {
		t.Fatal("Xvfb does not start: ", err)
	}
	// The driver ends every browser that it started when a tab of the browser crashes. Another
	// session can continue with a browser that the driver did not start.
	target := "127.0.0.1:" + freePort(t)
	group, endBrowser := startProgram(t, []string{
		"DISPLAY=:" + strings.TrimSpace(line), "HOME=" + profile, "XDG_RUNTIME_DIR=" + t.TempDir(), "LIBGL_ALWAYS_SOFTWARE=1", "GDK_BACKEND=x11",
		"WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS=1", // WebKit's sandbox does not work within a container
		"WEBKIT_DISABLE_COMPOSITING_MODE=1", "WEBKIT_INSPECTOR_SERVER=" + target,
	}, browsers[0], "--automation")
	dialUntilOpen(t, "WebKit", target).Close()
	address := "127.0.0.1:" + freePort(t)
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	startProgram(t, nil, "WebKitWebDriver", "--host="+host, "--port="+port, "--target="+target)
	dialUntilOpen(t, "WebKitWebDriver", address).Close()
	d := &webDriver{sessions: "http://" + address + "/session"}
	b := &otherBrowser{t: t, send: d.sendCommand, endBrowser: endBrowser, leaveCrash: d.leaveCrash, tabs: []string{"WebKitWebProces"}, group: group}
	if err := d.startSession(); err != nil {
		t.Fatal("WebKit starts no session: ", err)
	}
	return b, ""
}

// dialUntilOpen connects to a program that is starting.
func dialUntilOpen(t *testing.T, name, address string) net.Conn {
	t.Helper()
	for late := time.Now().Add(waitLimit); ; time.Sleep(askEvery) {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			return conn
		}
		if time.Now().After(late) {
			t.Fatal(name, " does not start: ", err)
		}
	}
}

// webDriver is a WebDriver session.
type webDriver struct {
	sessions string // URL that starts sessions
	session  string // URL of the session
}

func (d *webDriver) startSession() error {
	made, err := d.post(d.sessions, map[string]any{"capabilities": map[string]any{}})
	if err != nil {
		return err
	}
	var session struct{ SessionID string }
	err = json.Unmarshal(made, &session)
	d.session = d.sessions + "/" + session.SessionID
	return err
}

// leaveCrash starts a session with a new tab. The driver ends a session when the tab has crashed.
func (d *webDriver) leaveCrash(b *otherBrowser) {
	b.t.Helper()
	for late := time.Now().Add(waitLimit); ; time.Sleep(askEvery) {
		// The driver notices the crash when it receives a command, which then fails.
		_, _ = b.send("WebDriver:Navigate", map[string]any{"url": "about:blank"})
		err := d.startSession()
		if err == nil {
			return
		}
		if time.Now().After(late) {
			b.t.Fatal("WebKit starts no session after a crash: ", err)
		}
	}
}

// post sends a request and returns the value in the answer.
func (d *webDriver) post(url string, parameters any) (json.RawMessage, error) {
	text, err := json.Marshal(parameters)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var answer struct{ Value json.RawMessage }
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, errors.New(string(answer.Value))
	}
	return answer.Value, nil
}

// sendCommand translates the Marionette name of a command to a WebDriver path, and sends the
// command.
func (d *webDriver) sendCommand(command string, parameters any) (json.RawMessage, error) {
	path := map[string]string{
		"WebDriver:Navigate": "/url", "WebDriver:Refresh": "/refresh", "WebDriver:ExecuteAsyncScript": "/execute/async",
		"WebDriver:FindElement": "/element", "WebDriver:SetTimeouts": "/timeouts",
	}[command]
	if command == "WebDriver:ElementSendKeys" {
		path = "/element/" + parameters.(map[string]any)["id"].(string) + "/value"
	}
	if path == "" {
		return nil, errors.New("unknown command " + command)
	}
	return d.post(d.session+path, parameters)
}

func (b *otherBrowser) do(command string, parameters any) json.RawMessage {
	b.t.Helper()
	result, err := b.send(command, parameters)
	if err != nil {
		b.t.Fatalf("%s: %v", command, err)
	}
	return result
}

func (b *otherBrowser) visit(url string) {
	b.t.Helper()
	b.do("WebDriver:Navigate", map[string]any{"url": url})
}

// evaluate evaluates an expression, which may be a promise, and stores the value in *to.
func (b *otherBrowser) evaluate(expression string, to any) error {
	script := `const done = arguments[0]; (async () => JSON.stringify(await (` + expression + `)) ?? "null")().then((v) => done({ v }), (e) => done({ e: String(e) }))`
	text, err := b.send("WebDriver:ExecuteAsyncScript", map[string]any{"script": script, "args": []any{}})
	if err != nil {
		return err
	}
	var result struct{ V, E string }
	if err := json.Unmarshal(text, &result); err != nil {
		return fmt.Errorf("%s: %w", text, err)
	}
	if result.E != "" {
		return errors.New(result.E)
	}
	return json.Unmarshal([]byte(result.V), to)
}

func (b *otherBrowser) textOf(expression string) (value string) {
	b.t.Helper()
	if err := b.evaluate(expression, &value); err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

func (b *otherBrowser) waitTrue(what, expression string) {
	b.t.Helper()
	var err error
	for late := time.Now().Add(waitLimit); time.Now().Before(late); time.Sleep(2 * askEvery) {
		var yes bool
		if err = b.evaluate("!!("+expression+")", &yes); err == nil && yes {
			return
		}
	}
	var screen string
	_ = b.evaluate(`location.href + "\n" + document.body.innerText.slice(0, 2500)`, &screen)
	b.t.Fatalf("timeout while waiting for: %s\n%s\nlast error: %v\n%s", what, expression, err, screen)
}

// openFirstScreen loads the page, and waits until its program is running.
func (b *otherBrowser) openFirstScreen(s *server) {
	b.t.Helper()
	b.visit(s.origin + "/")
	b.waitReady()
}

func (b *otherBrowser) waitReady() {
	b.t.Helper()
	b.waitTrue("the program runs", `document.documentElement.dataset.ready === "1"`)
}

// clickElement clicks on an element with a script, because all browsers then agree on whether the
// element can be clicked.
func (b *otherBrowser) clickElement(selector string) {
	b.t.Helper()
	b.waitTrue(selector, `document.querySelector(`+quoteText(selector)+`)`)
	b.textOf(`(document.querySelector(` + quoteText(selector) + `).click(), "")`)
}

// killTab kills the processes that run the content of tabs (SIGKILL), as if the tab had crashed, and
// opens another tab.
func (b *otherBrowser) killTab() {
	b.t.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		b.t.Fatal(err)
	}
	killed := 0
	for _, folder := range processes {
		id, err := strconv.Atoi(filepath.Base(folder))
		if err != nil {
			b.t.Fatal(err)
		}
		// An error only means that the process has ended.
		group, _ := syscall.Getpgid(id)
		name, _ := os.ReadFile(filepath.Join(folder, "comm"))
		if group == b.group && slices.Contains(b.tabs, strings.TrimSpace(string(name))) && syscall.Kill(id, syscall.SIGKILL) == nil {
			killed++
		}
	}
	if killed == 0 {
		b.t.Fatal("no process runs the content of the tab")
	}
	b.leaveCrash(b)
}

// pickFiles selects a file in the file picker.
func (b *otherBrowser) pickFiles(path string) {
	b.t.Helper()
	b.fillInput("#file", path)
}

// dropFiles drops a file on the page. WebDriver cannot drag files from outside the browser, so a
// script reads the file from an additional input element, and sends the events of a drag.
func (b *otherBrowser) dropFiles(path string) {
	b.t.Helper()
	b.textOf(`(document.body.append(Object.assign(document.createElement("input"), { type: "file", id: "dragged" })), "")`)
	b.fillInput("#dragged", path)
	b.textOf(`(() => {
		const input = document.getElementById("dragged");
		const dataTransfer = new DataTransfer();
		dataTransfer.items.add(input.files[0]);
		input.remove();
		for (const kind of ["dragenter", "dragover", "drop"]) {
			const event = new DragEvent(kind, { dataTransfer, bubbles: true, cancelable: true });
			document.getElementById("drop").dispatchEvent(event);
			if (kind === "drop" && !event.defaultPrevented) throw new Error("the page does not accept the drop");
		}
		return "";
	})()`)
}

// fillInput enters the path of a file in an input element.
func (b *otherBrowser) fillInput(selector, path string) {
	b.t.Helper()
	found := b.do("WebDriver:FindElement", map[string]any{"using": "css selector", "value": selector})
	var element map[string]string
	if err := json.Unmarshal(found, &element); err != nil {
		b.t.Fatalf("%s: %v", found, err)
	}
	b.do("WebDriver:ElementSendKeys", map[string]any{"id": element[elementKey], "text": path})
}

func (b *otherBrowser) waitFinished() string {
	b.t.Helper()
	b.waitTrue("a result with a digest, and no run", `!document.querySelector("[data-running]") && document.querySelector("#digest")?.dataset.digest`)
	return b.textOf(`document.getElementById("digest").dataset.digest`)
}
