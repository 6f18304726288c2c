package main_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/servertest"
)

// glanceConfig configures Glance with a database and a store in files. The last section is what
// docs/with-openstack.md adds.
const glanceConfig = `[DEFAULT]
bind_host = 127.0.0.1
bind_port = %[1]s
workers = 0
use_keystone_limits = true
enabled_backends = files:file
[database]
connection = sqlite:///%[2]s/glance.sqlite
[glance_store]
default_backend = files
[files]
filesystem_store_datadir = %[2]s/images
[os_glance_staging_store]
filesystem_store_datadir = %[2]s/staging
[os_glance_tasks_store]
filesystem_store_datadir = %[2]s/tasks
[oslo_concurrency]
lock_path = %[2]s
[paste_deploy]
config_file = %[3]s
flavor =
[oslo_limit]
auth_type = admin_token
endpoint = %[4]s/keystone/v3
token = any
endpoint_id = glance
`

// startGlance starts a real Glance whose limits are at a server, and returns its URL.
func startGlance(t *testing.T, f serverFlags) string {
	t.Helper()
	dir, port := t.TempDir(), servertest.FreePorts(t, 1)[0]
	paste, err := filepath.Abs("testdata/openstack/glance-api-paste.ini")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"images", "staging", "tasks"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "glance.conf")
	text := fmt.Sprintf(glanceConfig, port[strings.LastIndexByte(port, ':')+1:], dir, paste, f.baseURL())
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	synced := startCommand(t, exec.Command("glance-manage", "--config-file", file, "db_sync")).awaitEnd(t)
	if synced.code != 0 {
		t.Fatalf("%+v", synced)
	}
	startCommand(t, exec.Command("glance-api", "--config-file", file))
	url := "http://" + port
	awaitCondition(t, "Glance does not answer", func() bool {
		answer, err := http.Get(url + "/versions")
		if err != nil {
			return false
		}
		return answer.Body.Close() == nil
	})
	return url
}

func callGlance(t *testing.T, project, method, url, kind string, body []byte) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"X-Identity-Status": "Confirmed", "X-Project-Id": project, "X-User-Id": "anna", "X-Roles": "member",
		"Content-Type": kind,
	} {
		r.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// createImage returns an empty id if Glance refuses the image.
func createImage(t *testing.T, url, project string) (id string, status int, text string) {
	t.Helper()
	status, text = callGlance(t, project, http.MethodPost, url+"/v2/images", "application/json",
		[]byte(`{"name": "x", "disk_format": "raw", "container_format": "bare"}`))
	if status == http.StatusCreated {
		_, id, _ = strings.Cut(text, `"id": "`)
		id, _, _ = strings.Cut(id, `"`)
	}
	return id, status, text
}

// TestOpenStackGlance: a real Glance keeps to the limits of a tree at any depth. It refuses the image too many of a
// project and of its parent, follows a change at once, and creates nothing while no server answers.
func TestOpenStackGlance(t *testing.T) {
	needOpenStack(t, "glance-api", "glance-manage")
	t.Parallel()
	f := singleServer(t, "--front-ends", "keystone")
	quorate := startServer(t, f)
	playSteps(t, f, []step{{"apply -f ../../examples/openstack/glance.yaml", 0, "applied"}})
	url := startGlance(t, f)
	const atlas, science, cms = "0b34c1d2", "7c1e0a5b", "91aa07f3"
	var last string
	create := func(project string, count int, refusal string) {
		t.Helper()
		for i := range count {
			id, status, text := createImage(t, url, project)
			if id == "" {
				t.Fatalf("image %d of %s: %d %s", i+1, project, status, text)
			}
			last = id
		}
		if id, status, text := createImage(t, url, project); id != "" || !strings.Contains(text, refusal) {
			t.Errorf("one more of %s: %d %s", project, status, text)
		}
	}
	create(atlas, 3, "image_count_total is over limit of 3 due to current usage 3 and delta 1")
	create(science, 7, "image_count_total is over limit of 7 due to current usage 7 and delta 1")
	create("stranger", 0, "image_count_total is over limit of 0")

	playSteps(t, f, []step{{"limit set glance:science/atlas image_count_total=5", 0, "applied"}})
	create(atlas, 2, "image_count_total is over limit of 5 due to current usage 5 and delta 1")
	if status, text := callGlance(t, atlas, http.MethodDelete, url+"/v2/images/"+last, "", nil); status !=
		http.StatusNoContent {
		t.Fatalf("deleting an image: %d %s", status, text)
	}
	create(atlas, 1, "image_count_total is over limit of 5")

	playSteps(t, f, []step{{"limit set glance:science/cms image_size_total=1", 0, "applied"}})
	upload := func(size int) (int, string) {
		t.Helper()
		id, status, text := createImage(t, url, cms)
		if id == "" {
			t.Fatalf("%d %s", status, text)
		}
		return callGlance(t, cms, http.MethodPut, url+"/v2/images/"+id+"/file", "application/octet-stream",
			make([]byte, size))
	}
	for range 2 { // Glance checks before an upload, whose size it does not know, whether the project is over
		if status, text := upload(1 << 20); status != http.StatusNoContent {
			t.Errorf("an image of one MiB: %d %s", status, text)
		}
	}
	if status, text := upload(1); status != http.StatusRequestEntityTooLarge ||
		!strings.Contains(text, "image_size_total is over limit of 1 due to current usage 2 and delta 0") {
		t.Errorf("another one: %d %s", status, text)
	}

	quorate.stopCleanly(t)
	if id, status, text := createImage(t, url, cms); id != "" || status < http.StatusInternalServerError {
		t.Errorf("while no server answers: %d %s", status, text)
	}
}
