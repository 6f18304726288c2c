package recovery

import (
	"fmt"
	"os"
	"syscall"
)

// checkUser refuses to write a file that the server could not read, because it runs as another user.
func (f Folder) checkUser() error {
	info, err := os.Stat(f.path(NoteFile))
	if err != nil {
		return err
	}
	owner, known := info.Sys().(*syscall.Stat_t)
	if own := os.Geteuid(); known && int(owner.Uid) != own {
		return fmt.Errorf("the server of %s runs as the user with the id %d, and this command as %d: "+
			"run it as the same user, such as with sudo -u '#%d'", f, owner.Uid, own, owner.Uid)
	}
	return nil
}
