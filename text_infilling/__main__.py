"""`python -m text_infilling` is `text-infill`."""

from text_infilling.app.cli import main

if __name__ == "__main__":
    main()
