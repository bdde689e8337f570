"""`python -m unbounded` is the command line."""

from unbounded.cli import main

if __name__ == "__main__":
    main()
