"""Install checkpoints/ inside the package, as transformer/checkpoints.

pyproject.toml can find packages or list them, and not add one to those that it finds.
"""

from setuptools import find_namespace_packages, setup

setup(
    packages=[
        *find_namespace_packages(include=["transformer*"], exclude=["*__pycache__*"]),
        "transformer.checkpoints",
    ],
    package_dir={"transformer.checkpoints": "checkpoints"},
    package_data={"": ["*"], "transformer.checkpoints": ["*/*"]},
    exclude_package_data={"": ["*.pyc"]},
)
