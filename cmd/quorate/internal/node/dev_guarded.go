//go:build unix

package node

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/quorate/quorate/client"
	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/internal/server"
)

// guardDev makes an administrator, guards the cluster and prints a token. A cluster that was guarded before stays as it
// is, because its bootstrap secret is spent.
func guardDev(ctx context.Context, out io.Writer, running []*server.Server, secretFile string) error {
	if running[0].Node().Book().Mode() == access.Guarded {
		_, err := fmt.Fprintln(out, "\nThe cluster is guarded; its token was printed at the first start.")
		return err
	}
	secret, err := os.ReadFile(secretFile)
	if err != nil {
		return fmt.Errorf("guarding the cluster: %w", err)
	}
	urls := []string{running[0].URL()}
	stranger, err := client.New(urls)
	if err != nil {
		return err
	}
	made, err := stranger.Access.Bootstrap(ctx,
		&adminv1.BootstrapRequest{Secret: strings.TrimSpace(string(secret))})
	if err != nil {
		return fmt.Errorf("making an administrator: %w", err)
	}
	admin, err := client.New(urls, client.WithInsecureToken(), client.WithTokenSource(
		func(context.Context) (string, error) { return made.GetSecret(), nil }))
	if err != nil {
		return err
	}
	_, err = admin.Access.SetAccessMode(ctx, &adminv1.SetAccessModeRequest{
		Mode: quoratev1.AccessMode_ACCESS_MODE_GUARDED, Reason: "quorate server dev --guarded",
	})
	if err != nil {
		return fmt.Errorf("guarding the cluster: %w", err)
	}
	_, err = fmt.Fprintf(out, `
The cluster is guarded. Its administrator, for a day:
  export QUORATE_TOKEN=%s
  quorate access whoami
`, made.GetSecret())
	return err
}
