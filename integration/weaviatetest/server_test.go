package weaviatetest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// roleVariable makes the test binary stand in for a program.
const roleVariable = "MMPLUG_WEAVIATETEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "parent": // starts a program and waits to be killed
		p, err := start(os.Args[0], []string{roleVariable + "=child"}, ".")
		if err != nil {
			os.Exit(1)
		}
		_, _ = os.Stdout.WriteString(strconv.Itoa(p.cmd.Process.Pid) + "\n") // the test sees what is missing
		select {}
	case "child":
		time.Sleep(time.Minute)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// The server gets ready, keeps its data over Stop, Kill and Restart, and is
// gone at the end.
func TestServer(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: without -short")
	}
	s := StartOwned(t, Options{})
	get := func(path string) (int, string) {
		t.Helper()
		response, err := http.Get("http://" + s.Host + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		if err := errors.Join(err, response.Body.Close()); err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(body)
	}
	response, err := http.Post("http://"+s.Host+"/v1/schema", "application/json", strings.NewReader(`{"class":"Kept","vectorizer":"none"}`))
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", response, err)
	}
	if err := response.Body.Close(); err != nil {
		t.Error(err)
	}
	for _, end := range []func() error{s.Stop, s.Kill} {
		pid := s.Pid()
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if s.Pid() != 0 {
			t.Error("the server is said to run")
		}
		if p, err := os.FindProcess(pid); err == nil && p.Signal(syscall.Signal(0)) == nil {
			t.Errorf("process %d is still there", pid)
		}
		if err := s.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		if code, body := get("/v1/schema/Kept"); code != http.StatusOK {
			t.Errorf("the class is lost: %d %s", code, body)
		}
	}
	if got, want := s.URL("Kept", "mode=bm25"), "weaviate://"+s.Host+"/Kept?grpc="+strconv.Itoa(s.GRPCPort)+"&mode=bm25"; got != want {
		t.Errorf("URL %s, want %s", got, want)
	}
	if got, want := s.URLWithout("Kept"), "weaviate://"+s.Host+"/Kept"; got != want {
		t.Errorf("URL %s, want %s", got, want)
	}
}

func TestNoServer(t *testing.T) {
	t.Setenv(EnvServer, "")
	t.Setenv(EnvURL, "")
	t.Setenv("PATH", t.TempDir())
	_, err := Run(t.Context(), Options{})
	if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), Install) {
		t.Errorf("error %v, want %v with the command that installs one", err, ErrUnavailable)
	}
	t.Setenv(EnvServer, filepath.Join(t.TempDir(), "nothing"))
	if _, err := Run(t.Context(), Options{}); err == nil || errors.Is(err, ErrUnavailable) {
		t.Errorf("error %v, want one about the path that is set", err)
	}
}

// A program that ends before it is ready is reported with what it said.
func TestServerThatFails(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skipf("SKIP: %v", err)
	}
	program := filepath.Join(t.TempDir(), "weaviate-server")
	if err := os.WriteFile(program, []byte("#!"+sh+"\necho no room >&2\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv(EnvServer, program)
	t.Setenv(EnvURL, "")
	t.Setenv(EnvAnyInterface, "1")
	_, err = Run(t.Context(), Options{})
	if err == nil || !strings.Contains(err.Error(), "ended before it was ready") || !strings.Contains(err.Error(), "no room") {
		t.Errorf("error %v, want what the program said", err)
	}
}

func TestRunningServer(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	defer web.Close()
	host := web.Listener.Addr().String()
	_, port, _ := strings.Cut(host, ":")
	t.Setenv(EnvURL, "weaviate://"+host+"?grpc="+port+"&api_key_env=KEY")
	s, err := Run(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if want := "weaviate://" + host + "/Pages?grpc=" + port + "&api_key_env=KEY"; s.URL("Pages") != want || s.Owned() || s.Pid() != 0 || s.Log() != "" {
		t.Errorf("URL %s, want %s, and a server of others", s.URL("Pages"), want)
	}
	for _, err := range []error{s.Kill(), s.Restart(t.Context())} {
		if !errors.Is(err, ErrUnavailable) {
			t.Errorf("error %v, want that it was not started here", err)
		}
	}
	if err := errors.Join(s.Stop(), s.Close()); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"http://host:1?grpc=2", "weaviate://host", "weaviate://host:1", "weaviate://host:1/Class?grpc=2"} {
		t.Setenv(EnvURL, bad)
		if _, err := Run(t.Context(), Options{}); err == nil || !strings.Contains(err.Error(), EnvURL) {
			t.Errorf("%s: error %v", bad, err)
		}
	}
	web.Close()
	t.Setenv(EnvURL, "weaviate://"+host+"?grpc="+port)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := Run(ctx, Options{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want that it is not ready", err)
	}
}

func TestTail(t *testing.T) {
	var log tail
	for range 100 {
		if _, err := log.Write([]byte(strings.Repeat("x", 1000))); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := log.Write([]byte("end")); err != nil {
		t.Fatal(err)
	}
	if got := log.String(); len(got) != tailSize || !strings.HasSuffix(got, "end") {
		t.Errorf("%d bytes kept, want the last %d", len(got), tailSize)
	}
}
