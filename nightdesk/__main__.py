"""`python -m nightdesk`."""

from nightdesk.cli import main

if __name__ == "__main__":
    main()
