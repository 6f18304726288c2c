package systems

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	_ "github.com/lib/pq" // the driver
)

//go:embed postgres.sql
var postgresSchema string

// postgres is a server of PostgreSQL with a synchronous standby. One stored function allocates, another one releases,
// each in a transaction of its own.
type postgres struct {
	processGroup
	binaries string
	// account runs the servers; nil for the user of this process. PostgreSQL does not run as root.
	account *syscall.Credential
	db      *sql.DB
}

// NewPostgres returns PostgreSQL with a synchronous standby, or why there is none.
func NewPostgres() (system System, missing string) {
	const install = "apt-get install postgresql"
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return nil, "PostgreSQL is not installed: " + install
	}
	slices.SortFunc(found, func(a, b string) int { return postgresVersion(a) - postgresVersion(b) })
	p := &postgres{binaries: filepath.Dir(found[len(found)-1])}
	if os.Geteuid() == 0 {
		if p.account, err = accountOf("postgres"); err != nil {
			return nil, fmt.Sprintf("PostgreSQL does not run as root, and %v: %s, or run this as another user", err, install)
		}
	}
	return p, ""
}

func postgresVersion(initdb string) int {
	version, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(initdb)))) // 0 for other folders
	return version
}

func accountOf(name string) (*syscall.Credential, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return nil, err
	}
	uid, errUID := strconv.ParseUint(u.Uid, 10, 32)
	gid, errGID := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(errUID, errGID)
}

func (*postgres) Name() string { return "postgres" }

func (*postgres) Supports(c Case) bool { return unaryPairs(c) && (c.Callers == 1 || c.Callers == 64) }

// Pause does nothing: idle servers of PostgreSQL use no CPU worth mentioning, and a long pause would end the connection
// between them.
func (*postgres) Pause() error { return nil }

// Resume does nothing.
func (*postgres) Resume(context.Context) error { return nil }

// Leader is the primary.
func (*postgres) Leader(context.Context) (int, error) { return 0, nil }

func (p *postgres) Start(ctx context.Context, folder string) error {
	addresses, err := freeAddresses(ctx, 2)
	if err != nil {
		return err
	}
	if p.account != nil {
		if err := os.Chown(folder, int(p.account.Uid), int(p.account.Gid)); err != nil {
			return fmt.Errorf("give the folder to the account of PostgreSQL: %w", err)
		}
	}
	primary, standby := filepath.Join(folder, "primary"), filepath.Join(folder, "standby")
	ports := []string{portOf(addresses[0]), portOf(addresses[1])}
	if err := p.run(ctx, folder, "initdb", "-D", primary, "-U", "postgres", "-A", "trust"); err != nil {
		return err
	}
	if err := p.startServer(folder, "primary", primary, ports[0]); err != nil {
		return err
	}
	p.db, err = sql.Open("postgres", "host=127.0.0.1 sslmode=disable user=postgres dbname=postgres port="+ports[0])
	if err != nil {
		return err
	}
	p.db.SetMaxIdleConns(mostConnections)
	if err := p.await(ctx, "wait for PostgreSQL", p.db.PingContext); err != nil {
		return err
	}
	err = p.run(ctx, folder, "pg_basebackup", "-D", standby, "-R", "-X", "stream", "-c", "fast",
		"-d", "host=127.0.0.1 user=postgres application_name=standby port="+ports[0])
	if err != nil {
		return err
	}
	if err := p.startServer(folder, "standby", standby, ports[1]); err != nil {
		return err
	}
	return p.prepare(ctx)
}

func portOf(address string) string { return address[strings.LastIndexByte(address, ':')+1:] }

func (p *postgres) run(ctx context.Context, folder, program string, arguments ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(p.binaries, program), arguments...)
	cmd.Dir = folder
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.account}
	out, err := cmd.CombinedOutput()
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s: the user that runs PostgreSQL cannot enter %s; name another folder with -dir: %w",
			program, folder, err)
	case err != nil:
		return fmt.Errorf("%s: %w: %s", program, err, out)
	}
	return nil
}

// startServer starts a server with the default settings, which sync every commit.
func (p *postgres) startServer(folder, name, data, port string) error {
	cmd := exec.Command(filepath.Join(p.binaries, "postgres"), "-D", data, "-p", port, //nolint:noctx // Stop ends it
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "max_connections=200")
	cmd.Dir = folder
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.account}
	started, err := startProcess(name, folder, cmd)
	if err == nil {
		p.processGroup = append(p.processGroup, started)
	}
	return err
}

// prepare makes the standby synchronous and creates tables and functions.
func (p *postgres) prepare(ctx context.Context) error {
	for _, statement := range []string{
		"ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()",
	} {
		if _, err := p.db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	err := p.await(ctx, "wait for the standby", func(ctx context.Context) error {
		var state string
		if err := p.db.QueryRowContext(ctx, "SELECT sync_state FROM pg_stat_replication").Scan(&state); err != nil {
			return err
		}
		if state != "sync" {
			return fmt.Errorf("the standby is %s", state)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if _, err = p.db.ExecContext(ctx, postgresSchema); err != nil {
		return err
	}
	const insert = "INSERT INTO nodes VALUES ($1, 0, 0, $2, $2)"
	for tree := range 64 { // as many as callers of any case
		for _, path := range postgresPath(tree) {
			if _, err := p.db.ExecContext(ctx, insert, path, int64(nodeLimit)); err != nil {
				return err
			}
		}
	}
	return nil
}

// postgresPath has the leaf first.
func postgresPath(tree int) [3]string {
	prefix := strconv.Itoa(tree) + "/"
	return [...]string{prefix + leafNode(0), prefix + middleNode, prefix + topNode}
}

func (p *postgres) Measure(ctx context.Context, c Case, w Window) (work Work, err error) {
	allocate, err := p.db.PrepareContext(ctx, "SELECT allocate($1, $2, $3, $4)")
	if err != nil {
		return work, err
	}
	defer func() { err = errors.Join(err, allocate.Close()) }()
	release, err := p.db.PrepareContext(ctx, "SELECT release($1)")
	if err != nil {
		return work, err
	}
	defer func() { err = errors.Join(err, release.Close()) }()
	window := windows.Add(1)
	return measureCallers(ctx, c, w, func(caller int) callerWork {
		path := postgresPath(0)
		if c.Spread {
			path = postgresPath(caller)
		}
		return func(ctx context.Context, it *iteration) error {
			id := fmt.Sprintf("%d-%d", window, it.Number)
			return it.callPair(1, func() error {
				_, err := allocate.ExecContext(ctx, id, path[0], path[1], path[2])
				return err
			}, func() error {
				_, err := release.ExecContext(ctx, id)
				return err
			})
		}
	})
}

func (p *postgres) CheckEmpty(ctx context.Context) error {
	var held, used int64
	err := p.db.QueryRowContext(ctx,
		"SELECT (SELECT count(*) FROM allocations), (SELECT sum(cpu_used + memory_used) FROM nodes)").Scan(&held, &used)
	if err == nil && (held != 0 || used != 0) {
		err = fmt.Errorf("%d allocations are left, and %d is in use", held, used)
	}
	return err
}

// Stop ends the servers at once: their data is not needed any more.
func (p *postgres) Stop() error {
	var err error
	if p.db != nil {
		err = p.db.Close()
	}
	return errors.Join(err, p.stopAll(syscall.SIGQUIT))
}
