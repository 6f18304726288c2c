package quota

// confirm makes a reservation held for good.
func (l *Ledger) confirm(Confirm) Outcome { return Outcome{} }

// cancel ends a reservation.
func (l *Ledger) cancel(Cancel) Outcome { return Outcome{} }

// expire ends what is due.
func (l *Ledger) expire(Expire) Outcome { return Outcome{} }
