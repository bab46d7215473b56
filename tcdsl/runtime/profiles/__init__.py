"""Where the time of a call goes: `f.profile(*arguments)`."""
