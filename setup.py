"""What pyproject.toml cannot say: checkpoints/ is installed as transformer/checkpoints."""

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
