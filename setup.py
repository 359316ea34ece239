"""Installs the library and its experiments: `pip install -e .`, with extras `serve`, `report`, `test` and `gpu`."""

from setuptools import find_packages, setup

SERVE = ["starlette>=1.0,<2", "uvicorn>=0.40,<0.56", "h11>=0.16,<0.17", "prometheus-client>=0.21,<1"]

setup(
    name="text_infilling",
    version="0.1.0",
    description='A TensorFlow reproduction of "Text Infilling" (Zhu, Hu, Xing 2019)',
    license="Apache-2.0",
    entry_points={"console_scripts": ["text-infill=text_infilling.app.cli:main"]},
    python_requires=">=3.10",
    packages=find_packages(include=["text_infilling*", "experiments*", "benchmarks*"]),
    package_data={
        "text_infilling": ["py.typed", "base_model/*"],
        "text_infilling.app": ["page.html", "page.css", "page.js", "page_results.js"],
        "experiments": ["report.css"],
        "experiments.annotation": ["page.html"],
        "text_infilling.corpora.synthetic": ["data/*.txt"],
    },
    install_requires=[
        # Same minor version for both: tensorflow-text is compiled against its TensorFlow.
        "tensorflow>=2.21,<2.22",
        "tensorflow-text>=2.21,<2.22",
        "numpy>=2.0,<3",
        "nltk>=3.9,<4",
        "absl-py>=2.1,<3",
        "tensorboard>=2.20,<2.22",
        "sacrebleu>=2.5,<3",
    ],
    extras_require={
        "serve": SERVE,
        "test": [*SERVE, "pytest>=9.0,<10", "pytest-xdist>=3.7,<4", "hypothesis>=6.150,<7", "ruff>=0.15,<0.18"],
        "report": ["matplotlib>=3.10,<3.12", "markdown>=3.8,<4"],
        "gpu": ["tensorflow[and-cuda]>=2.21,<2.22"],
    },
)
